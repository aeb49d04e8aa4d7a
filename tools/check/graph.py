"""Which Python file uses which: imports, packages, conftest files, and modules named in text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from pathlib import Path, PurePosixPath

import grimp

ROOTS = ("lockstep", "tests", "tools", "bench")
_RUN = re.compile(r"[\"'](lockstep(?:\.\w+)+)[\"']")
"""A module that a test starts by name, as in `python -m lockstep.train.run`."""


def module_of(path: str) -> str | None:
    """Return the module that a path defines, `lockstep.api` for `src/lockstep/api/__init__.py`."""
    parts = PurePosixPath(path.removeprefix("src/")).with_suffix("").parts
    if not path.endswith(".py") or parts[0] not in ROOTS:
        return None
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Users:
    """The modules that use a module, one step each."""

    def __init__(self, graph: grimp.ImportGraph, named: Mapping[str, Set[str]]) -> None:
        """Take the imports, and for each module those that name it in a string."""
        self._graph = graph
        self._named = named
        self._modules = graph.modules

    def of(self, module: str) -> set[str]:
        """Return the modules that run a module's code when they are imported or tested."""
        if module not in self._modules:
            return set()
        users = set(self._graph.find_modules_that_directly_import(module))
        users |= self._graph.find_children(module)  # a package's own code runs before theirs
        users |= self._named.get(module, set())
        folder, _, name = module.rpartition(".")
        if name == "conftest":
            users |= self._graph.find_descendants(folder)
        return users


def named_in(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Return for each module of Lockstep the modules whose text names it in quotes."""
    found: dict[str, set[str]] = {}
    for module, text in texts.items():
        for name in _RUN.findall(text):
            found.setdefault(name, set()).add(module)
    return found


def texts(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the text of each Python file below the folders, by its path."""
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
    }


def users(root: Path, sources: Mapping[str, str]) -> Users:
    """Read the imports of all Python code below the root; unchanged files come from a cache."""
    graph = grimp.build_graph(*ROOTS, cache_dir=str(root / ".import_linter_cache"))
    tests = {
        module: text
        for path, text in sources.items()
        if path.startswith("tests/") and (module := module_of(path)) is not None
    }
    return Users(graph, named_in(tests))
