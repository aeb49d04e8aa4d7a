"""The files of one dataset on this node's disks."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from lockstep.api.dataset_cache import CacheTier
from lockstep.data.cache.directories import MEMORY, Directories
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.core import tiers
from lockstep.data.core.manifest import Entry, Manifest
from lockstep.data.core.order import unchanged
from lockstep.data.core.tiers import Room, in_blocks
from lockstep.keys.files import replace_file

_ANY: Final = Directories()
NAME: Final = "lockstep-data"
"""Directory of the cache on a tier that has a path of its own."""


class Shelf:
    """Where the versions of one dataset lie: ``TIER/UID/``, and their manifests."""

    def __init__(self, root: Path, uid: str, directories: Directories = _ANY) -> None:
        self._root, self._uid, self._directories = root, uid, directories
        self._manifests = root / "manifests" / uid
        self._manifests.mkdir(parents=True, exist_ok=True)

    # --- manifests ---

    def manifest(self, version: str) -> Manifest | None:
        """Return the manifest of *version*, if it is here."""
        try:
            data = (self._manifests / version).read_bytes()
            entries, rejected = msgspec.msgpack.decode(data, type=tuple[list[Entry], list[str]])
        except (OSError, msgspec.DecodeError):
            return None
        return Manifest(tuple(entries), tuple(rejected))

    def keep(self, manifest: Manifest) -> None:
        """Keep *manifest* under its version."""
        whole = msgspec.msgpack.encode((manifest.entries, manifest.rejected))
        replace_file(self._manifests / manifest.version, whole, durable=False)

    # --- tiers ---

    def base(self, tier: CacheTier) -> Path:
        """Return the dataset's directory on *tier*.

        Raises:
            SourceFailed: when no cache may lie there.
        """
        if tier.path:
            try:
                return self._directories.tier(Path(tier.path)) / NAME / self._uid
            except ValueError as error:
                raise SourceFailed("TierRefused", str(error)) from error
        if tier.medium == "MEM":
            return MEMORY / f"{NAME}-{os.geteuid()}" / self._uid
        return self._root / "files" / self._uid

    def rooms(self, levels: Iterable[CacheTier]) -> list[Room]:
        """Return each of *levels* with what it has left.

        Raises:
            SourceFailed: when no cache may lie on a tier.
            OSError: when a tier cannot be used.
        """
        found = []
        for tier in levels:
            base = self.base(tier)
            _own(base.parent)
            base.mkdir(exist_ok=True)
            free = os.statvfs(base)
            found.append(Room(tier, free.f_bavail * free.f_frsize, usage(base)))
        return found

    def choose(self, levels: Sequence[CacheTier], manifest: Manifest, *, partly: bool) -> CacheTier:
        """Return the first of *levels* that holds all of *manifest*, else the largest if *partly*.

        One that has files of the version already is kept; those of another version that are the
        same are taken over.

        Raises:
            SourceFailed: when none holds it, and a part is of no use.
            OSError: when a tier cannot be used.
        """
        rooms = self.rooms(levels)
        for tier in levels:
            if manifest.version in [one.name for one in self.versions(tier)]:
                return tier
        chosen = tiers.choose(rooms, need(manifest.entries))
        if chosen is None:
            if not partly:
                text = tiers.refusal(rooms, need(manifest.entries))
                raise SourceFailed("TooLargeForTheCache", text)
            chosen = max(range(len(rooms)), key=lambda one: rooms[one].capacity)
        tier = levels[chosen]
        for name in [one.name for one in self.versions(tier)]:
            was = self.manifest(name)
            if was is not None:
                base, same = self.base(tier), unchanged(was, manifest)
                self.adopt(base / name, base / manifest.version, same)
        return tier

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

    def remove(self, levels: Iterable[CacheTier]) -> None:
        """Remove all of the dataset."""
        for tier in levels:
            with suppress(SourceFailed):
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
