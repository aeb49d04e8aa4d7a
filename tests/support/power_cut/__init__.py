"""Power cuts: what lies on a disk after one, of all that a program wrote and did not sync.

A program runs under a layer (``layer.c``) that logs its changes to the files of one directory.
:class:`Disk` then plays the log up to any moment and draws what a disk may hold after a cut there:

- of data that was not synced, any blocks of 4 KiB, the first few, or none;
- of names (creations, renames, removals) whose directory was not synced, the first few, so that a
  renamed file may be there without its data;
- all that was synced, and the names of files that were synced.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

BLOCK = 4096


def _layer(directory: Path) -> Path:
    """Build the library that logs; a test without a C compiler is skipped."""
    source, built = Path(__file__).with_name("layer.c"), directory / "layer.so"
    try:
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", built, source, "-ldl", "-lpthread"], check=True
        )
    except FileNotFoundError:
        pytest.skip("needs a C compiler")
    return built


@dataclass(frozen=True)
class Change:
    """One change of the disk; ``at`` is an offset or a size."""

    op: str
    path: str
    to: str
    at: int
    data: bytes


def logged(program: Path, directory: Path, *arguments: str) -> list[Change]:
    """Run a Python program on ``directory/disk`` under the layer; return what it changed there.

    The program finds its directory in ``POWER_ROOT`` and writes its promises to ``POWER_ACKS``.
    """
    (directory / "disk").mkdir()
    env = os.environ | {
        "LD_PRELOAD": str(_layer(directory)),
        "POWER_ROOT": str(directory / "disk"),
        "POWER_LOG": str(directory / "log"),
        "POWER_ACKS": str(directory / "acks"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    subprocess.run([sys.executable, program, *arguments], env=env, check=True)
    return list(_read(directory / "log", directory / "disk"))


def _read(log: Path, root: Path) -> Iterator[Change]:
    with log.open("rb") as file:
        for line in file:
            told = json.loads(line)
            data = file.read(told["size"])
            path = told["path"].removeprefix(str(root)).strip("/")
            to = told["to"]
            if told["op"] in {"rename", "link"}:
                to = to.removeprefix(str(root)).strip("/")
            yield Change(told["op"], path, to, told["at"], data)


class _File:
    """One file: what was synced, what is in memory, and the changes between the two."""

    def __init__(self) -> None:
        self.synced, self.now = bytearray(), bytearray()
        self.waiting: list[tuple[int, bytes | None]] = []

    def change(self, at: int, data: bytes | None) -> None:
        """Write *data* at an offset, or cut the file to a size where there is none."""
        _apply(self.now, at, data)
        if data is None:
            self.waiting.append((at, None))
            return
        for start in range(0, len(data), BLOCK):
            self.waiting.append((at + start, data[start : start + BLOCK]))

    def sync(self) -> None:
        self.synced, self.waiting = bytearray(self.now), []

    def after(self, draw: random.Random) -> bytes:
        """Return what is on the disk after a cut."""
        found, mode = bytearray(self.synced), draw.choice(("none", "first", "any", "all"))
        first = draw.randint(0, len(self.waiting))
        for number, (at, data) in enumerate(self.waiting):
            if (
                mode == "all"
                or (mode == "first" and number < first)
                or (mode == "any" and draw.random() < 0.5)
            ):
                _apply(found, at, data)
        return bytes(found)


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    if data is None:
        del content[at:]
    else:
        content[at : at + len(data)] = data


@dataclass
class Disk:
    """A disk that is written by a log of changes, and may lose its power after any of them."""

    changes: list[Change]
    played: int = 0
    acks: list[Any] = field(default_factory=list)
    """What the program had promised so far, a JSON value each."""
    _now: dict[str, Any] = field(default_factory=dict)
    _synced: dict[str, Any] = field(default_factory=dict)
    _waiting: list[tuple[int, Change]] = field(default_factory=list)
    _made: dict[int, _File] = field(default_factory=dict)

    def play(self, until: int) -> None:
        """Carry out the changes before *until*."""
        for number in range(self.played, until):
            self._carry_out(number, self.changes[number])
        self.played = max(self.played, until)

    def cut(self, target: Path, draw: random.Random) -> None:
        """Write below *target* what may be on the disk after a cut now."""
        names = dict(self._synced)
        for number, change in self._waiting[: draw.randint(0, len(self._waiting))]:
            self._name(names, number, change)
        target.mkdir(parents=True)
        drawn: dict[int, bytes] = {}
        for path, what in sorted(names.items()):
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if what is None:
                place.mkdir(exist_ok=True)
            elif isinstance(what, str):
                place.symlink_to(what)
            else:
                place.write_bytes(drawn.setdefault(id(what), what.after(draw)))

    def _carry_out(self, number: int, change: Change) -> None:
        file = self._now.get(change.path)
        if change.op == "ack":
            self.acks += [json.loads(line) for line in change.data.splitlines()]
        elif change.op == "write" and isinstance(file, _File):
            file.change(change.at, change.data)
        elif change.op == "truncate" and isinstance(file, _File):
            file.change(change.at, None)
        elif change.op == "sync all":
            for one in self._now.values():
                if isinstance(one, _File):
                    one.sync()
            self._synced, self._waiting = dict(self._now), []
        elif change.op == "sync":
            self._sync(change.path, file)
        elif change.op == "open" and isinstance(file, _File):
            if change.to:
                file.change(0, None)
        elif change.op not in {"write", "truncate"}:
            self._name(self._now, number, change)
            self._waiting.append((number, change))

    def _sync(self, path: str, file: Any) -> None:
        if isinstance(file, _File):
            file.sync()
        kept = []
        for number, change in self._waiting:
            named = change.to if change.op in {"rename", "link"} else change.path
            inside = named.rpartition("/")[0] == path and not isinstance(file, _File)
            if inside or (change.op == "open" and self._made.get(number) is file):
                self._name(self._synced, number, change)
            else:
                kept.append((number, change))
        self._waiting = kept

    def _name(self, names: dict[str, Any], number: int, change: Change) -> None:
        """Carry out a change of names; of the same change a file is always the same one."""
        if change.op == "open":
            names[change.path] = self._made.setdefault(number, _File())
        elif change.op == "mkdir":
            names.setdefault(change.path, None)
        elif change.op == "symlink":
            names[change.path] = change.to
        elif change.op == "link" and change.path in names:
            names[change.to] = names[change.path]
        elif change.op in {"unlink", "rmdir"}:
            names.pop(change.path, None)
        elif change.op == "rename" and change.path in names:
            moved = [one for one in names if _inside(one, change.path)]
            for old in [one for one in names if _inside(one, change.to)]:
                del names[old]
            for old in moved:
                names[change.to + old.removeprefix(change.path)] = names.pop(old)


def _inside(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")
