"""A version of a dataset: which files it has, made of which objects."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec


class Found(msgspec.Struct, frozen=True, gc=False):
    """One object of a source, as its listing tells it."""

    key: str
    """Relative to the mount's source."""
    size: int
    etag: str
    mtime: float
    """Seconds since 1970."""


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One file of a version."""

    path: str
    size: int
    etag: str
    mtime: float
    mount: int
    """Which of the dataset's mounts it comes from."""
    key: str
    """The object there."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one version, by path."""

    entries: tuple[Entry, ...]
    rejected: tuple[str, ...] = ()
    """Keys that cannot be files, each with the reason."""

    @property
    def version(self) -> str:
        """Return what tells this version from others: a digest of all that is listed."""
        digest = hashlib.sha256()
        for one in self.entries:
            line = f"{one.path}\n{one.size}\n{one.etag}\n{one.mtime:.3f}\n{one.mount}\n"
            digest.update(line.encode())
        return digest.hexdigest()[:16]

    @property
    def bytes(self) -> int:
        """Return the size of all files together."""
        return sum(one.size for one in self.entries)

    def told(self, most: int) -> list[str]:
        """Return *most* of the rejected keys, and how many more there are."""
        more = len(self.rejected) - most
        return [*self.rejected[:most], *([f"and {more} more"] if more > 0 else [])]

    def below(self, target: str) -> list[Entry]:
        """Return the files at or below the path *target*; ``/`` is all."""
        place = target.strip("/")
        if not place:
            return list(self.entries)
        inside = f"{place}/"
        return [one for one in self.entries if one.path == place or one.path.startswith(inside)]


_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4000


def build(listings: Iterable[tuple[str, Iterable[Found]]]) -> Manifest:
    """Return the manifest of mounts, each its path in the dataset and what its source lists.

    A key that cannot be a file is left out and told: the rest is served.
    """
    entries: dict[str, Entry] = {}
    rejected: list[str] = []
    for mount, (place, found) in enumerate(listings):
        for one in found:
            if one.key.endswith("/") and one.size == 0:
                continue  # a marker that stands for a directory
            path = f"{place}/{one.key}" if place else one.key
            if reason := _unfit(path):
                rejected.append(f"{_short(one.key)}: {reason}")
            elif path in entries:
                rejected.append(f"{_short(one.key)}: another object has this path")
            else:
                entries[path] = Entry(path, one.size, one.etag, one.mtime, mount, one.key)
    for path in _shadowing(entries):
        dropped = entries.pop(path)
        if dropped.size:  # an empty one stands for the directory
            rejected.append(f"{_short(dropped.key)}: it is a file, and others lie below it")
    return Manifest(tuple(entries[path] for path in sorted(entries)), tuple(rejected))


_ODD: Final = re.compile(r"[\0-\x1f\x7f]|(?:^|/)(?:/|$|\.\.?(?:/|$))|[^\0-\x7f]")
"""What a plain path has not; one with it is looked at closely."""


_CONTROL: Final = re.compile(r"[\0-\x1f\x7f]")
_BROKEN: Final = re.compile("[\ud800-\udfff]")
_SHOWN: Final = 100
"""Characters of a key that its rejection shows."""


def _short(key: str) -> str:
    return repr(key) if len(key) <= _SHOWN else f"{key[:_SHOWN]!r}... ({len(key)} characters)"


def _unfit(path: str) -> str:
    if len(path) <= _LONGEST_NAME and _ODD.search(path) is None:
        return ""
    if _CONTROL.search(path):
        return "a path must not contain NUL, a line break or another control character"
    if _BROKEN.search(path):
        return "a path must be UTF-8"
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "a path must not have empty parts, '.' or '..'"
    if len(path.encode()) > _LONGEST_PATH:
        return f"a path has at most {_LONGEST_PATH} bytes"
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        return f"a file name has at most {_LONGEST_NAME} bytes"
    return ""


def _shadowing(entries: Iterable[str]) -> list[str]:
    """Return the paths that are files here and directories of others."""
    known = set(entries)
    parents = set[str]()
    for path in known:
        parent = path.rpartition("/")[0]
        while parent and parent not in parents:
            parents.add(parent)
            parent = parent.rpartition("/")[0]
    return sorted(known & parents)
