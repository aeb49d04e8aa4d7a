"""The files of one dataset on this node's disks."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from lockstep.api.dataset_cache import CacheTier
from lockstep.data.core.manifest import Entry, Manifest
from lockstep.data.core.tiers import Room, in_blocks

NAME: Final = "lockstep-data"
"""Directory of the cache on a tier that has a path of its own."""
MEMORY: Final = Path("/dev/shm")  # noqa: S108  a directory of the cache's own is made in it


class Shelf:
    """Where the versions of one dataset lie: ``TIER/UID/``, and their manifests."""

    def __init__(self, root: Path, uid: str) -> None:
        self._root, self._uid = root, uid
        self._manifests = root / "manifests" / uid
        self._manifests.mkdir(parents=True, exist_ok=True)

    # --- manifests ---

    def manifest(self, version: str) -> Manifest | None:
        """Return the manifest of *version*, if it is here."""
        try:
            data = (self._manifests / version).read_bytes()
        except OSError:
            return None
        entries, rejected = msgspec.msgpack.decode(data, type=tuple[list[Entry], list[str]])
        return Manifest(tuple(entries), tuple(rejected))

    def keep(self, manifest: Manifest) -> None:
        """Keep *manifest* under its version."""
        draft = self._manifests / f".{manifest.version}"
        draft.write_bytes(msgspec.msgpack.encode((manifest.entries, manifest.rejected)))
        draft.replace(self._manifests / manifest.version)

    # --- tiers ---

    def base(self, tier: CacheTier) -> Path:
        """Return the dataset's directory on *tier*."""
        if tier.path:
            return Path(tier.path) / NAME / self._uid
        if tier.medium == "MEM":
            return MEMORY / f"{NAME}-{os.geteuid()}" / self._uid
        return self._root / "files" / self._uid

    def rooms(self, tiers: Iterable[CacheTier]) -> list[Room]:
        """Return each tier with what it has left.

        Raises:
            OSError: when a tier cannot be used.
        """
        found = []
        for tier in tiers:
            base = self.base(tier)
            _own(base.parent)
            base.mkdir(exist_ok=True)
            free = os.statvfs(base)
            found.append(Room(tier, free.f_bavail * free.f_frsize, usage(base)))
        return found

    # --- files ---

    def adopt(self, old: Path, new: Path, entries: Iterable[Entry]) -> None:
        """Let *entries* of another version be in *new* too, without a copy."""
        new.mkdir(exist_ok=True)
        for one in entries:
            source, target = old / one.path, new / one.path
            if source.exists() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(source, target)

    def versions(self, tier: CacheTier) -> list[Path]:
        """Return the versions on *tier*, the youngest first."""
        base = self.base(tier)
        found = [one for one in base.iterdir() if not one.name.startswith(".")]
        return sorted(found, key=lambda one: one.stat().st_mtime, reverse=True)

    def remove(self, tiers: Iterable[CacheTier]) -> None:
        """Remove all of the dataset."""
        for tier in tiers:
            shutil.rmtree(self.base(tier), ignore_errors=True)
        shutil.rmtree(self._manifests, ignore_errors=True)


def _own(place: Path) -> None:
    """Make *place* a directory of the cache's own.

    Raises:
        OSError: when another user has made it, who could change what pods read.
    """
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    seen = place.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise OSError(f"{place} is not a directory of the user that the cache runs as")


def usage(root: Path) -> int:
    """Return the bytes on disk below *root*, each file counted once."""
    seen = set[int]()
    total = 0
    for directory, _, names in os.walk(root):
        for name in names:
            one = Path(directory, name).lstat()
            if one.st_ino not in seen:
                seen.add(one.st_ino)
                total += one.st_blocks * 512
    return total


def need(entries: Iterable[Entry]) -> int:
    """Return the bytes that *entries* take on a disk."""
    return sum(in_blocks(one.size) for one in entries)
