"""Directories of the node that datasets may show, and in which their caches may lie.

On a cluster the cache is a privileged part of the node, and any team names directories in its
datasets. So there it reads those alone that an administrator has named.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")  # noqa: S108  a directory of the cache's own is made in it


@dataclass(frozen=True, slots=True)
class Directories:
    """What of the node's file system datasets may use."""

    hidden: tuple[Path, ...] = ()
    """No dataset shows what lies in these, or holds them."""
    shown: tuple[Path, ...] | None = None
    """Datasets show what lies in these alone; None is any directory that is not hidden."""
    tiers: tuple[Path, ...] | None = None
    """Caches lie in these alone; None is any directory."""

    def source(self, place: Path) -> Path:
        """Return the real directory *place* that a dataset shows.

        Raises:
            ValueError: when no dataset may show it.
            FileNotFoundError: when there is none.
        """
        real = place.resolve()
        if self.shown is not None and not _within(real, self.shown):
            # Whether there is such a directory is not told.
            named = ", ".join(map(str, self.shown)) or "none"
            raise ValueError(
                f"local:// shows directories of the node that an administrator has named "
                f"(data.localDirectories of the chart, --local DIR): {named}; not {place}"
            )
        for one in self.hidden:
            if real.is_relative_to(one) or one.is_relative_to(real):
                raise ValueError(f"{place} holds what datasets may not show: {one}")
        if not real.is_dir():
            raise FileNotFoundError(f"{place} is no directory of this node")
        return real

    def shown_below(self, root: Path, keys: Iterable[str]) -> set[str]:
        """Return those of *keys*, paths below *root*, that no link leads to what is not shown."""
        of_folder = functools.cache(lambda folder: os.path.realpath(root / folder))
        found = set[str]()
        for key in keys:
            folder, _, name = key.rpartition("/")
            real = Path(os.path.realpath(f"{of_folder(folder)}/{name}"))
            inside = self.shown is None or _within(real, self.shown)
            if inside and not _within(real, self.hidden):
                found.add(key)
        return found

    def tier(self, place: Path) -> Path:
        """Return the directory *place* in which a cache may lie.

        Raises:
            ValueError: when none may lie there.
        """
        if self.tiers is not None and not _within(place.resolve(), self.tiers):
            raise ValueError(
                f"tieredstore.levels[].path is {str(place)!r}: caches of this node lie in "
                f"{', '.join(map(str, self.tiers))}; leave path out"
            )
        return place

    @classmethod
    def of(
        cls, data: Path, hide: Sequence[Path], local: Sequence[Path], kubelet: Path | None
    ) -> Directories:
        """Return those of a cache below *data*; with a *kubelet* it is part of a cluster's node."""
        hidden = tuple(one.resolve() for one in (*hide, data))
        if kubelet is None:
            return cls(hidden)
        shown = tuple(one.resolve() for one in local)
        return cls((*hidden, kubelet.resolve()), shown, (data.resolve(), MEMORY))


def _within(real: Path, places: tuple[Path, ...]) -> bool:
    return any(real.is_relative_to(one) for one in places)
