"""One dataset on this node: brings it to what its DatasetCache asks for, and tells how far."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import time
from pathlib import Path
from typing import Any, Final, Literal

from lockstep.api.core import SECRETS
from lockstep.api.dataset_cache import (
    DATASET_CACHES,
    CacheMount,
    CacheTier,
    DatasetCache,
    DatasetCacheStatus,
    TargetStatus,
)
from lockstep.api.merge import difference
from lockstep.api.wire import to_builtins
from lockstep.data.cache.fetching import Fetcher
from lockstep.data.cache.shelf import Shelf, need
from lockstep.data.cache.sources import Source, SourceFailed
from lockstep.data.core import tiers
from lockstep.data.core.manifest import Entry, Manifest, build
from lockstep.data.core.order import to_fetch, unchanged
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.events import Recorder

log = logging.getLogger(__name__)

TELL_EVERY: Final = 0.5
"""Seconds between two reports while files arrive."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
_SHOWN_KEYS: Final = 20
OWN_TIER: Final = CacheTier(medium="SSD")
"""Where a dataset goes whose runtime names no tier."""

Phase = Literal["Pending", "Loading", "Ready", "Failed"]


class Keeper:
    """Keeps one dataset; lives as long as its DatasetCache."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        root: Path,
        hidden: tuple[Path, ...],
        cache: DatasetCache,
    ) -> None:
        self._client, self._recorder, self._hidden = client, recorder, hidden
        self.cache = cache
        self.shelf = Shelf(root, cache.metadata.uid)
        self._changed = asyncio.Event()
        self._changed.set()
        self._told = cache.status
        self._manifest: Manifest | None = None
        self._have: dict[str, Entry] = {}
        self._place: Path | None = None
        self._capacity = self._fetched = self._rate = 0

    @property
    def _tiers(self) -> list[CacheTier]:
        return self.cache.spec.tiers or [OWN_TIER]

    def update(self, cache: DatasetCache) -> None:
        """Note what is asked for now."""
        before, self.cache = self.cache, cache
        if before.spec != cache.spec:
            self._changed.set()

    async def run(self) -> None:
        """Bring the node to what is asked for, again after each change; until cancelled."""
        pause = FIRST_PAUSE
        while True:
            self._changed.clear()
            try:
                await self._turn()
                pause, wait = FIRST_PAUSE, None
            except (SourceFailed, OSError, ApiError) as error:
                with contextlib.suppress(ApiError):
                    await self._fail(error)
                wait, pause = pause, min(pause * 2, LONGEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait)

    async def remove(self) -> None:
        """Remove the dataset from the node."""
        await asyncio.to_thread(self.shelf.remove, self._tiers)

    # --- turns ---

    async def _turn(self) -> None:
        spec = self.cache.spec
        listed = self._told.listed
        known = await asyncio.to_thread(self.shelf.manifest, listed) if listed else None
        if known is None or spec.reload != self._told.reload:
            await self._list()
        if spec.version:
            await self._load(spec.version)

    async def _list(self) -> None:
        sources = await self._sources()
        found = [await source.list() for source in sources]
        places = [mount.path for mount in self.cache.spec.mounts]
        manifest = await asyncio.to_thread(build, zip(places, found, strict=True))
        await asyncio.to_thread(self.shelf.keep, manifest)
        rejected = list(manifest.rejected[:_SHOWN_KEYS])
        new = _replace(
            self._told, listed=manifest.version, reload=self.cache.spec.reload, rejected=rejected
        )
        if not self.cache.spec.version:
            new = _replace(new, files=len(manifest.entries), bytes=manifest.bytes, phase="Pending")
        await self._tell(new)

    async def _load(self, version: str) -> None:
        manifest = await asyncio.to_thread(self.shelf.manifest, version)
        if manifest is None:
            raise SourceFailed(
                "SourceChanged",
                f"this node lists version {self._told.listed}, and {version} is bound; "
                "a DataLoad with loadMetadata binds what the source has now",
            )
        place = await self._make_room(manifest)
        self._manifest, self._place = manifest, place
        paths = await asyncio.to_thread(self.shelf.have, place, manifest)
        self._have = {one.path: one for one in manifest.entries if one.path in paths}
        lacking = to_fetch(manifest, paths, self.cache.spec.targets)
        if lacking:
            await self._fetch(place, lacking)
        self._rate = 0
        await self._tell(self._status("Ready"))

    async def _make_room(self, manifest: Manifest) -> Path:
        """Return the directory for *manifest*, on the first tier that holds all of it."""
        version = manifest.version
        rooms = await asyncio.to_thread(self.shelf.rooms, self._tiers)
        self._capacity = sum(room.capacity for room in rooms)
        for tier in self._tiers:
            old = [one.name for one in self.shelf.versions(tier)]
            if version in old:
                break
        else:
            chosen = tiers.choose(rooms, need(manifest.entries))
            if chosen is None:
                text = tiers.refusal(rooms, need(manifest.entries))
                raise SourceFailed("TooLargeForTheCache", text)
            tier = self._tiers[chosen]
            old = [one.name for one in self.shelf.versions(tier)]
        self.shelf.stay(tier)
        place = self.shelf.place(tier, version)
        for name in old:
            was = self.shelf.manifest(name)
            if was is not None and name != version:
                same = unchanged(was, manifest)
                await asyncio.to_thread(self.shelf.adopt, place.parent / name, place, same)
        return place

    async def _fetch(self, place: Path, lacking: list[Entry]) -> None:
        fetcher = Fetcher(await self._sources(), place, self._arrived)
        fetching = asyncio.create_task(fetcher.run(lacking))
        since, before = time.monotonic(), self._fetched
        try:
            await self._tell(self._status("Loading"))
            while not (await asyncio.wait([fetching], timeout=TELL_EVERY))[0]:
                now = time.monotonic()
                self._rate = int((self._fetched - before) / (now - since))
                await self._tell(self._status("Loading"))
            await fetching
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    def _arrived(self, entry: Entry) -> None:
        self._have[entry.path] = entry
        self._fetched += entry.size

    async def _sources(self) -> list[Source]:
        found = []
        for mount in self.cache.spec.mounts:
            secrets = await self._secrets(mount)
            found.append(await asyncio.to_thread(Source, mount, secrets, self._hidden))
        return found

    async def _secrets(self, mount: CacheMount) -> dict[str, str]:
        found = {}
        for name, ref in mount.secrets.items():
            where = f"Secret {self.cache.metadata.namespace}/{ref.name}"
            try:
                secret = await self._client.get(SECRETS, ref.name, self.cache.metadata.namespace)
            except NotFound as error:
                text = f"{where} is missing: {mount.uri} needs its key {ref.key}"
                raise SourceFailed("SecretMissing", text) from error
            if ref.key not in secret.data:
                raise SourceFailed("SecretMissing", f"{where} has no key {ref.key}")
            found[name] = base64.b64decode(secret.data[ref.key]).decode(errors="replace")
        return found

    # --- telling ---

    def _status(self, phase: Phase) -> DatasetCacheStatus:
        manifest = self._manifest or Manifest(())
        targets = {}
        for target in self.cache.spec.targets:
            entries = manifest.below(target)
            there = [one for one in entries if one.path in self._have]
            targets[target] = TargetStatus(
                files=len(entries),
                bytes=sum(one.size for one in entries),
                cached_files=len(there),
                cached_bytes=sum(one.size for one in there),
            )
        return _replace(
            self._told,
            phase=phase,
            reason="",
            message="",
            version=manifest.version,
            path=str(self._place),
            files=len(manifest.entries),
            bytes=manifest.bytes,
            capacity=self._capacity,
            cached_files=len(self._have),
            cached_bytes=sum(one.size for one in self._have.values()),
            fetched_bytes=self._fetched,
            rate=self._rate,
            targets=targets,
        )

    async def _fail(self, error: Exception) -> None:
        reason = error.reason if isinstance(error, SourceFailed) else "CacheFailed"
        message = str(error)
        log.warning("%s: %s: %s", self.cache.metadata.name, reason, message)
        if self._told.message != message:
            self._recorder.event(self.cache, "Warning", reason, message)
        base = self._status("Failed") if self._manifest else self._told
        await self._tell(_replace(base, phase="Failed", reason=reason, message=message))

    async def _tell(self, new: DatasetCacheStatus) -> None:
        if patch := difference(to_builtins(self._told), to_builtins(new)):
            meta = self.cache.metadata
            with contextlib.suppress(NotFound):
                await self._client.patch(
                    DATASET_CACHES,
                    meta.name,
                    {"status": patch},
                    meta.namespace,
                    subresource="status",
                )
            self._told = new


def _replace(status: DatasetCacheStatus, **changes: Any) -> DatasetCacheStatus:
    import msgspec

    return msgspec.structs.replace(status, **changes)
