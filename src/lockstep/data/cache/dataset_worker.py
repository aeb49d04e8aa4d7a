"""One dataset on this node: brings it to what its DatasetCache asks for, and tells how far."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from typing import Any, Final

from msgspec import structs

from lockstep.api.backoff import Backoff, Pauses
from lockstep.api.dataset_cache import DATASET_CACHES, CacheTier, DatasetCache, DatasetCacheStatus
from lockstep.api.merge import difference
from lockstep.api.wire import to_builtins
from lockstep.data.cache import opening, targets
from lockstep.data.cache.metrics import figures
from lockstep.data.cache.node import Node
from lockstep.data.cache.peers import Peers
from lockstep.data.cache.prefetch import Prefetch
from lockstep.data.cache.served_version import ServedVersion
from lockstep.data.cache.serving import Refusal
from lockstep.data.cache.shelf import Shelf, need, usage
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.cache.stock import Stock, forget
from lockstep.data.cache.store_reads import Terms
from lockstep.data.cache.supply import Pace, Supply
from lockstep.data.core.manifest import build
from lockstep.data.core.room import Account
from lockstep.data.core.waits import Waits
from lockstep.kube.errors import ApiError, NotFound

log = logging.getLogger(__name__)

TELL_EVERY: Final = 0.5
"""Seconds between two reports while files arrive."""
TELL_READS_EVERY: Final = 5.0
"""Seconds between two reports of what pods read."""
PAUSES: Final = Backoff(initial=1.0, cap=30.0, jitter=0.2)
_SHOWN_KEYS: Final = 20
_FOR_GOOD: Final = ("SourceChanged", "TooLargeForTheCache")
"""Why a node does not get a bound version, however long others wait for it."""
OWN_TIER: Final = CacheTier(medium="SSD")
"""Where a dataset goes whose runtime names no tier."""


class DatasetWorker:
    """Keeps one dataset; lives as long as its DatasetCache."""

    def __init__(self, node: Node, cache: DatasetCache) -> None:
        self.node, self.cache = node, cache
        self.uid = cache.metadata.uid
        self.shelf = Shelf(node.root, self.uid, node.directories)
        self.token = ""
        self.shown: dict[str, ServedVersion] = {}
        """Versions that are served, by their digest."""
        self._past = set[str]()
        """Versions that were served, and are not any more."""
        self.last_read = time.monotonic()
        self._changed = asyncio.Event()
        self._changed.set()
        self._told = cache.status
        self.supply: Supply | None = None
        self._filling: asyncio.Task[bool] | None = None
        self._wanted: tuple[int, ...] = ()
        self._incomplete = ""
        self._troubles: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._capacity = self._rate = 0
        self._before = (time.monotonic(), 0)
        self._tier = OWN_TIER
        self.waits = Waits(dict(cache.status.job_waits))

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
        pauses = Pauses(PAUSES)
        try:
            while True:
                self._changed.clear()
                try:
                    await self._turn()
                    pauses.worked()
                    wait = self._again()
                except (SourceFailed, OSError, ApiError) as error:
                    with contextlib.suppress(ApiError):
                        await self._fail(error)
                    wait = pauses.failed()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), wait)
        finally:
            await self._stop()

    def _again(self) -> float | None:
        """Return in how many seconds there is something to tell."""
        if self._filling is not None:
            return TELL_EVERY
        return TELL_READS_EVERY if self.cache.spec.reading else None

    async def _stop(self) -> None:
        tasks = [*self._tasks, *([self._filling] if self._filling else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._filling, self._tasks = None, []

    async def remove(self) -> None:
        """Remove the dataset from the node."""
        for version in self.shown:
            await self.node.views.hide(self.uid, version)
        await asyncio.to_thread(self.shelf.remove, self._tiers)

    @property
    def idle(self) -> bool:
        """Whether the dataset may go from the node when another needs the room."""
        spec = self.cache.spec
        return self.supply is not None and not spec.reading and not spec.pin

    def shrink(self, size: int) -> int:
        """Let go of *size* bytes, and of the wish to fetch them again; return how many went."""
        if self.supply is None:
            return 0
        if self._filling is not None:
            self._filling.cancel()
        self._incomplete = "other datasets needed its room on this node"
        self._changed.set()
        return self.supply.shrink(size)

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
        sources = await opening.sources(self.node, self.cache)
        found = [await source.list() for source in sources]
        places = [mount.path for mount in self.cache.spec.mounts]
        manifest = await asyncio.to_thread(build, zip(places, found, strict=True))
        await asyncio.to_thread(self.shelf.keep, manifest)
        rejected = manifest.told(_SHOWN_KEYS)
        new = structs.replace(
            self._told, listed=manifest.version, reload=self.cache.spec.reload, rejected=rejected
        )
        if not self.cache.spec.version:
            new = structs.replace(
                new, files=len(manifest.entries), bytes=manifest.bytes, phase="Pending"
            )
        await self._tell(new)

    async def _load(self, version: str) -> None:
        supply = self.supply
        if supply is None or supply.stock.manifest.version != version:
            supply = await self._open(version)
        spec = self.cache.spec
        await self._meet(supply.terms)
        supply.terms.timeout = float(spec.timeout)
        await self._see_room(supply)
        self._see_filling(supply)
        view = await self._see_view(supply)
        await self._tell(self._status(supply, view))

    async def _meet(self, terms: Terms) -> None:
        """Let *terms* know the other nodes of the dataset."""
        spec = self.cache.spec
        if spec.token is not None and terms.peers is None:
            namespace = self.cache.metadata.namespace
            self.token = await opening.secret(
                self.node.client, namespace, spec.token, "the dataset's nodes"
            )
            terms.peers = Peers(self.node.name, self.uid_of_peers, self.token)
        if terms.peers is not None:
            terms.peers.update(self.cache.spec.peers)

    @property
    def uid_of_peers(self) -> str:
        """Return what all nodes of the dataset call it."""
        owners = self.cache.metadata.owner_references
        return owners[0].uid if owners else self.uid

    async def _open(self, version: str) -> Supply:
        """Begin to serve *version*; what was fetched of it before is there."""
        manifest = await asyncio.to_thread(self.shelf.manifest, version)
        if manifest is None:
            raise SourceFailed(
                "SourceChanged",
                f"this node lists version {self._told.listed}, and {version} is bound; "
                "a DataLoad with loadMetadata binds what the source has now",
            )
        sources = await opening.sources(self.node, self.cache)
        views = self.node.views.possible
        tier = await asyncio.to_thread(self.shelf.choose, self._tiers, manifest, partly=views)
        base = self.shelf.base(tier)
        stock = await asyncio.to_thread(Stock, base, manifest)
        await asyncio.to_thread(stock.recover)
        terms = Terms(sources=sources)
        await self._meet(terms)  # before anything is read, which would be asked of the store
        await self._stop()
        supply = Supply(
            stock, terms, renew=self._renew, make_room=self._make_room, trouble=self._trouble
        )
        self.supply, self._tier = supply, tier
        await self._see_room(supply)
        prefetch = Prefetch(supply)
        self._tasks = [asyncio.create_task(prefetch.run())]
        self.shown[version] = await asyncio.to_thread(
            ServedVersion, supply, prefetch, self._about, asyncio.get_running_loop()
        )
        self._past.discard(version)
        self._incomplete, self._wanted = "", ()
        return supply

    async def _see_room(self, supply: Supply) -> None:
        """Bring the account up to date, and let go of what nothing needs any more."""
        version, base = supply.stock.manifest.version, supply.stock.place.parent
        if not self.cache.spec.reading:
            for old in [one for one in self.shown if one != version]:
                await self.node.views.hide(self.uid, old)
                del self.shown[old]
                self._past.add(old)
            for path in self.shelf.versions(self._tier):
                if path.name != version:
                    await asyncio.to_thread(forget, base, path.name)
        [room] = await asyncio.to_thread(self.shelf.rooms, [self._tier])
        self._capacity = room.capacity
        account = supply.terms.account
        if supply.terms.account.limit == 0 or self._filling is None:
            supply.terms.account = account = Account(
                room.capacity,
                int(room.capacity * self._tier.low / self._tier.high),
                await asyncio.to_thread(usage, base),
                account.reserved,
                lambda size: self.node.fits(self, size),
            )
        if account.surplus and not self.bound(supply):
            supply.shrink(account.surplus)

    def bound(self, supply: Supply) -> bool:
        """Return whether pods may have the files directly, so that none may go."""
        stock = supply.stock
        supply.terms.bound = self.cache.spec.reading and stock.files == len(stock.manifest.entries)
        return supply.terms.bound

    def _see_filling(self, supply: Supply) -> None:
        """Fetch what the targets lack, in a task of its own."""
        if self._filling is not None and self._filling.done():
            filling, self._filling = self._filling, None
            if not filling.cancelled() and not filling.result() and not self._incomplete:
                whole, quota = need(supply.stock.manifest.entries), self.cache.spec.quota
                rest = whole - supply.terms.account.used
                short = 0 if self.node.fits(self, rest) else quota
                self._incomplete = targets.short(whole, self._tier.medium, self._capacity, short)
        wanted = tuple(targets.files(supply.stock, self.cache.spec.targets))
        if wanted != self._wanted:
            self._wanted, self._incomplete = wanted, ""
            if self._filling is not None:
                self._filling.cancel()
                self._filling = None
        if self._filling is None and not self._incomplete:
            lacking = [one for one in wanted if not supply.stock.whole(one)]
            if lacking:
                pace = Pace(self.cache.spec.rate) if self.cache.spec.rate else None
                self._filling = asyncio.create_task(supply.fill(lacking, pace))
                self._filling.add_done_callback(lambda _: self._changed.set())

    async def _see_view(self, supply: Supply) -> str:
        """Return where the version is shown as a file system, while pods read it."""
        views, version = self.node.views, supply.stock.manifest.version
        if not views.possible or not self.cache.spec.reading:
            return ""
        if self.bound(supply) and not self._told.view:
            return ""
        shown = self.shown[version]
        return str(await views.show(self.uid, shown.tree, shown))

    # --- what a supply asks for ---

    def _make_room(self, size: int) -> int:
        supply = self.supply
        if supply is None or not (self.cache.spec.reading or self._filling is not None):
            return 0
        freed = self.node.make_room(self, size)
        most = self._tier.bytes or sys.maxsize
        supply.terms.account.limit = min(
            supply.terms.account.limit + freed, int(most * self._tier.high)
        )
        return freed

    async def _renew(self) -> None:
        if self.supply is not None:
            with contextlib.suppress(ApiError):  # the keys that are held serve on
                self.supply.terms.sources = await opening.sources(self.node, self.cache)

    def _trouble(self, error: SourceFailed) -> None:
        """Say once a minute what readers are told; the status has it until it is over."""
        now = time.monotonic()
        if now - self._troubles.get(error.reason, -60.0) >= 60.0:
            self._troubles[error.reason] = now
            self.node.recorder.event(self.cache, "Warning", error.reason, str(error))

    def _about(self) -> Any:
        return {
            "address": self.node.address,
            "certificate": self.node.certificate,
            "token": self.token,
            "uid": self.uid_of_peers,
            "namespace": self.cache.metadata.namespace,
            "dataset": self.cache.spec.dataset,
            "version": self.cache.spec.version,
        }

    # --- for the server ---

    def of(self, version: str) -> ServedVersion:
        """Return what is served of *version*; ``current`` is the bound one.

        Raises:
            Refusal: 404 when it is not here yet, for it may be coming; 410 when it does not come.
        """
        found = self.shown.get(self.cache.spec.version if version == "current" else version)
        if found is None:
            never = version in self._past or (
                version == self.cache.spec.version
                and self._told.phase == "Failed"
                and self._told.reason in _FOR_GOOD
            )
            words = f"this node has no version {version}"
            raise Refusal(410, words) if never else Refusal(404, f"{words} (yet)")
        self.last_read = time.monotonic()
        return found

    # --- telling ---

    def _status(self, supply: Supply, view: str) -> DatasetCacheStatus:
        stock, counts, spec = supply.stock, supply.counts, self.cache.spec
        now, came = time.monotonic(), counts.store + counts.peer
        if now - self._before[0] >= TELL_EVERY / 2:
            self._rate = int((came - self._before[1]) / (now - self._before[0]))
            self._before = now, came
        filling = self._filling is not None
        self.waits.note(counts.waited, spec.jobs)
        why = supply.store.failing
        if self._incomplete:
            why = SourceFailed("TooLargeForTheCache", self._incomplete)
        return structs.replace(
            self._told,
            phase="Loading" if filling else "Ready",
            reason=why.reason if why else "",
            message=str(why or ""),
            view=view,
            bound=self.bound(supply),
            address=self.node.address,
            certificate=self.node.certificate,
            capacity=self._capacity,
            **figures(supply),
            job_waits=dict(self.waits.shown()),
            rate=self._rate if filling or spec.reading else 0,
            targets={one: targets.status(stock, one) for one in spec.targets},
        )

    async def _fail(self, error: Exception) -> None:
        reason = error.reason if isinstance(error, SourceFailed) else "CacheFailed"
        message = str(error)
        log.warning("%s: %s: %s", self.cache.metadata.name, reason, message)
        if self._told.message != message:
            self.node.recorder.event(self.cache, "Warning", reason, message)
        base = self._told
        if self.supply is not None and self.supply.stock.manifest.version == base.version:
            base = self._status(self.supply, base.view)
        await self._tell(structs.replace(base, phase="Failed", reason=reason, message=message))

    async def _tell(self, new: DatasetCacheStatus) -> None:
        if patch := difference(to_builtins(self._told), to_builtins(new)):
            meta = self.cache.metadata
            with contextlib.suppress(NotFound):
                await self.node.client.patch(
                    DATASET_CACHES,
                    meta.name,
                    {"status": patch},
                    meta.namespace,
                    subresource="status",
                )
            self._told = new
