"""A directory of this machine, made ready for jobs: its record, its parts, what is odd about it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Final

from lockstep.api.code import PART, Code
from lockstep.kube.code.parts import name_of, parts
from lockstep.kube.code.tree import IGNORE_FILE, git, read

LOCK_FILES: Final = ("uv.lock", "requirements.lock", "requirements*.txt", "environment.yml")
"""Files that say which packages a program needs, the most exact first."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What goes with the jobs of one command."""

    code: Code
    parts: dict[str, bytes] = field(repr=False)
    """What the namespace is to hold, by the name of its ConfigMap."""
    warnings: tuple[str, ...] = ()


def bundle(root: Path, *, carried: bool = True) -> Bundle:
    """Return the directory *root* with its record.

    Where it is not *carried*, because its jobs run in it, there is the record alone.

    Raises:
        BadCode: when it cannot be read, or is larger than code may be.
    """
    tree = read(root)
    digest, found = parts(tree)
    head = (git(tree.root, "rev-parse", "--verify", "HEAD") or b"").decode().strip()
    changes = git(tree.root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv")
    source, packages = _environment(tree.root)
    kept = {name_of(one): one for one in (*(found if carried else ()), packages) if one}
    code = Code(
        digest=digest,
        parts=[name_of(one) for one in found] if carried else [],
        files=len(tree.files),
        size=sum(one.size for one in tree.files),
        commit=head,
        changes=f"sha256:{hashlib.sha256(changes).hexdigest()}" if changes else "",
        environment=source[:253],
        packages=name_of(packages) if packages else "",
    )
    odd = []
    if secrets := ", ".join(tree.secrets[:5]):
        odd.append(
            f"{secrets} may hold secrets. Each user who may read the ConfigMaps of the "
            f"namespace can read what is sent: write it into {IGNORE_FILE} unless the job needs it"
        )
    if tree.left_out:
        odd.append("links that lead out of it were left out: " + ", ".join(tree.left_out[:5]))
    return Bundle(code, kept, tuple(odd) if carried else ())


def _environment(root: Path) -> tuple[str, bytes]:
    """Return the lock file of *root*, else the active virtual environment, and its packages."""
    for pattern in LOCK_FILES:
        for place in sorted(root.glob(pattern)):
            if place.is_file() and not place.is_symlink() and place.stat().st_size <= PART:
                return place.name, place.read_bytes()
    home = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX") or ""
    if not home:
        return "", b""
    from importlib.metadata import distributions

    places = [str(one) for one in Path(home).glob("lib/python3*/site-packages")]
    found = {f"{one.name}=={one.version}\n" for one in distributions(path=places)}
    return home, "".join(sorted(found, key=str.lower)).encode()


def names_a_file(command: Iterable[str], root: Path) -> bool:
    """Tell whether a *command* runs something of the directory *root*: a file, or a module."""
    words = list(command)
    modules = [after.replace(".", "/") for word, after in pairwise(words) if word == "-m"]
    wanted = [*words, *(f"{one}.py" for one in modules), *(f"{one}/__main__.py" for one in modules)]
    return any(_inside(root, one) for one in wanted if not one.startswith(("-", "/")))


def _inside(root: Path, path: str) -> bool:
    if len(path) > 1000 or "\0" in path or ".." in PurePosixPath(path).parts:
        return False
    try:
        return (root / path).is_file()
    except OSError:
        return False
