"""The files of a version as a tree: numbers for the kernel, the same in every life of the cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lockstep.data.core.manifest import Entry, Manifest

ROOT: Final = 1
"""Number of the root; other directories follow, then the files in the manifest's order."""


@dataclass(frozen=True, slots=True)
class Child:
    """A name in a directory."""

    name: str
    node: int


class Tree:
    """Directories and files by number; both follow from the manifest alone."""

    def __init__(self, manifest: Manifest) -> None:
        self.entries = manifest.entries
        self._directories = {"": ROOT}
        self._children: list[dict[str, int]] = [{}]
        for entry in self.entries:
            self._make(entry.path.rpartition("/")[0])
        self.first_file = ROOT + len(self._directories)
        for index, entry in enumerate(self.entries):
            parent, _, name = entry.path.rpartition("/")
            self._children[self._directories[parent] - ROOT][name] = self.first_file + index

    def _make(self, path: str) -> int:
        known = self._directories.get(path)
        if known is not None:
            return known
        parent, _, name = path.rpartition("/")
        above = self._make(parent)
        number = self._directories[path] = ROOT + len(self._directories)
        self._children.append({})
        self._children[above - ROOT][name] = number
        return number

    @property
    def size(self) -> int:
        """Return how many numbers there are."""
        return len(self._children) + len(self.entries)

    def file(self, node: int) -> int | None:
        """Return the index of the file *node* in the manifest; none for a directory."""
        index = node - self.first_file
        return index if 0 <= index < len(self.entries) else None

    def entry(self, node: int) -> Entry | None:
        """Return the file *node*; none for a directory."""
        index = self.file(node)
        return None if index is None else self.entries[index]

    def find(self, parent: int, name: str) -> int | None:
        """Return the number of *name* in the directory *parent*."""
        if not ROOT <= parent < self.first_file:
            return None
        return self._children[parent - ROOT].get(name)

    def children(self, parent: int) -> Iterator[Child]:
        """Yield what the directory *parent* holds, in order."""
        for name, node in self._children[parent - ROOT].items():
            yield Child(name, node)

    def directory(self, path: str) -> int | None:
        """Return the number of the directory *path*; the root is the empty path."""
        return self._directories.get(path.strip("/"))
