"""Files that import each other in a circle: none may inside a folder of Lockstep, nor in native.

An import inside a function counts; one under ``TYPE_CHECKING`` does not. In C a header and the
source of the same name are one file, and ``#include "..."`` is the import.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)

Graph = Mapping[str, set[str]]


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of two files and more, each sorted (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return sorted(found)


def python_imports(root: Path) -> dict[str, set[str]]:
    """Return by module what it imports of its own room, for all modules below ``src/lockstep``."""
    src = root / "src"
    texts = {_module(path.relative_to(src)): path for path in (src / "lockstep").rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for module, path in texts.items():
        room = module.split(".")[1:2]
        named = imported(ast.parse(path.read_text()))
        there = {_nearest(name, texts.keys()) for name in named}
        graph[module] = {one for one in there if one and one.split(".")[1:2] == room} - {module}
    return graph


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield what a file imports, ``package.name`` for ``from package import name``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        waiting += ast.iter_child_nodes(node)


def c_includes(root: Path) -> dict[str, set[str]]:
    """Return by C file below ``native``, without its suffix, the files that it includes."""
    native = root / "native"
    paths = [path for path in native.rglob("*.[ch]") if "build" not in path.parts]
    graph: dict[str, set[str]] = {str(_unit(path, native)): set() for path in paths}
    for path in paths:
        own = str(_unit(path, native))
        for name in _INCLUDE.findall(path.read_text()):
            beside = str(_unit(path.parent / name, native))
            if beside in graph and beside != own:
                graph[own].add(beside)
    return graph


def faults(root: Path) -> list[str]:
    """Return a line for each circle of files."""
    found = circles(python_imports(root)) + circles(c_includes(root))
    return [f"these files import each other: {', '.join(names)}" for names in found]


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _nearest(name: str, modules: Iterable[str]) -> str:
    """Return the module that a name is, or is defined in; empty where it is not ours."""
    return (
        name if name in modules else name.rpartition(".")[0] * (name.rpartition(".")[0] in modules)
    )


def _unit(path: Path, root: Path) -> Path:
    return Path(path).resolve().relative_to(root.resolve()).with_suffix("")
