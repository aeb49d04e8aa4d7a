"""Follows a machine's cards: what they say once a second, which are in trouble, which come and go.

A card is read in a thread of its own. One whose library call hangs holds up no other; it is in
trouble until it answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lockstep.devices import finding, nvml, sysfs
from lockstep.devices.core.model import Card, Inventory
from lockstep.devices.sampling import Lost, Sample, Sampler
from lockstep.devices.xids import Xids

log = logging.getLogger(__name__)

PERIOD = 1.0
LIVENESS = 0.5
"""Seconds between two looks whether a card is still there."""
RESCAN = 30.0
"""Seconds between two searches for cards that came or went."""
EVENTS_WAIT = 1000
FENCED = "fenced: its NodeHealth says why"
XID = 0x8


class Thread:
    """Runs jobs one after another; it ends with the process, even while a job hangs."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._jobs = queue.SimpleQueue()
        self.since = 0.0
        """When the job began that runs now; 0 when none does."""
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, job: Callable[[], Any]) -> Future[Any]:
        """Queue a job."""
        done: Future[Any] = Future()
        self._jobs.put((job, done))
        return done

    def end(self) -> None:
        """End after what is queued."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            self.since = time.monotonic()
            try:
                done.set_result(job())
            except Exception as error:
                done.set_exception(error)
            self.since = 0.0


@dataclass
class Watched:
    """One card that is followed."""

    card: Card
    thread: Thread
    sampler: Sampler | None = None
    sample: Sample = field(default_factory=Sample)
    asked: Future[Any] | None = None
    trouble: str = ""


class Watch:
    """The cards of this machine. ``changed`` is set whenever the inventory is another."""

    def __init__(
        self,
        root: Path = sysfs.ROOT,
        cpus: Iterable[int] | None = None,
        xids: Xids | None = None,
    ) -> None:
        self._xids = xids or Xids()
        self._root, self._cpus = root, None if cpus is None else set(cpus)
        self._lib: Any = None
        self._watched: dict[str, Watched] = {}
        self._found = Inventory()
        self._aside: frozenset[str] = frozenset()
        self.fenced: frozenset[str] = frozenset()
        """Devices that are not handed out, as ``gpu/3``: the node's NodeHealth says so."""
        self._scanner = Thread("devices")
        self._listeners: list[Callable[[], None]] = []
        self.sampled = asyncio.Event()

    @property
    def inventory(self) -> Inventory:
        """Return what there is now, with the troubles of cards."""
        cards = []
        for card in self._found.cards:
            watched = self._watched.get(card.uuid)
            told = self._xids.of(card.uuid).trouble
            fence = FENCED if f"gpu/{card.index}" in self.fenced else ""
            trouble = card.trouble or told or (watched.trouble if watched else "") or fence
            cards.append(replace(card, trouble=trouble) if trouble else card)
        ports = [
            replace(port, aside=True) if port.name in self._aside else port
            for port in self._found.ports
        ]
        return replace(self._found, cards=cards, ports=ports)

    def samples(self) -> list[tuple[Card, Sample]]:
        """Return the last reading of each card; only its Xids where it cannot be read."""
        found = []
        for card in self.inventory.cards:
            watched = self._watched.get(card.uuid)
            if watched is None:
                continue
            told = self._xids.of(card.uuid).values
            sample = watched.sample
            if watched.trouble:
                found.append((card, Sample(told)))
            else:
                found.append((card, Sample(sample.values | told, sample.processes)))
        return found

    def cleared(self, devices: Iterable[str]) -> None:
        """Note that devices (as ``gpu/3``) were reset or passed a check: their Xids are over."""
        before, names = self.inventory, set(devices)
        self._xids.clear([one.uuid for one in before.cards if f"gpu/{one.index}" in names])
        self._tell(before)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call *listener* whenever the inventory changed."""
        self._listeners.append(listener)

    def set_aside(self, names: frozenset[str]) -> None:
        """Note which network cards are handed out under another name than ours."""
        before = self.inventory
        self._aside = names
        self._tell(before)

    def fence(self, devices: Iterable[str]) -> None:
        """Note which devices are fenced now: no part hands them out."""
        before, self.fenced = self.fenced, frozenset(devices)
        for listener in self._listeners if self.fenced != before else ():
            listener()

    async def start(self) -> None:
        """Find the devices for the first time."""
        await self._scan()

    async def run(self) -> None:
        """Follow the cards until cancelled."""
        events = asyncio.ensure_future(self._follow_events())
        scanned = time.monotonic()
        try:
            while True:
                await self._tick()
                if time.monotonic() - scanned > RESCAN:
                    await self._scan()
                    scanned = time.monotonic()
        finally:
            events.cancel()

    # --- finding ---

    async def _scan(self) -> None:
        if self._scanner.since:
            return
        cpus = self._cpus
        work = asyncio.wrap_future(self._scanner.submit(lambda: finding.find(self._root, cpus)))
        with contextlib.suppress(TimeoutError):
            found = await asyncio.wait_for(work, nvml.PATIENCE * 2)
            self._take(found)

    def _take(self, found: Inventory) -> None:
        before = self.inventory
        kept: dict[str, Watched] = {}
        for card in found.cards:
            if card.vendor != "nvidia" or not card.uuid or card.trouble:
                continue
            watched = self._watched.pop(card.uuid, None)
            if watched is not None and watched.card.index != card.index:
                watched.sampler = None
            kept[card.uuid] = watched or Watched(card, Thread(f"gpu-{card.index}"))
            kept[card.uuid].card = card
        for uuid, watched in self._watched.items():
            # A card that fell off the bus stays known by its identity until the node restarts.
            if watched.trouble and uuid not in kept and all(c.uuid != uuid for c in found.cards):
                kept[uuid] = watched
                found = replace(found, cards=_with(found.cards, watched.card))
            else:
                watched.thread.end()
        self._watched = kept
        self._found = found
        self._tell(before)

    def _tell(self, before: Inventory) -> None:
        if self.inventory != before:
            for listener in self._listeners:
                listener()

    # --- reading ---

    async def _tick(self) -> None:
        """Read every card once; between two readings look whether each is still there."""
        started = time.monotonic()
        await self._ask(_read, LIVENESS)
        self.sampled.set()
        await asyncio.sleep(max(0.0, started + LIVENESS - time.monotonic()))
        await self._ask(_alive, LIVENESS)
        await asyncio.sleep(max(0.0, started + PERIOD - time.monotonic()))

    async def _ask(self, question: Callable[[Any, Watched], None], limit: float) -> None:
        if self._lib is None:
            self._lib = await asyncio.to_thread(_initialised)
        if self._lib is None or not self._watched:
            return
        before = self.inventory
        asked = [self._question(one, question) for one in self._watched.values()]
        pending = [asyncio.wrap_future(one) for one in asked if one is not None]
        for one in pending:
            one.add_done_callback(_forget)
        if pending:
            await asyncio.wait(pending, timeout=limit)
        for watched in self._watched.values():
            _judge(watched)
        self._tell(before)

    def _question(
        self, watched: Watched, question: Callable[[Any, Watched], None]
    ) -> Future[Any] | None:
        if watched.asked is not None and not watched.asked.done():
            return None
        lib = self._lib
        watched.asked = watched.thread.submit(lambda: question(lib, watched))
        return watched.asked

    # --- events ---

    async def _follow_events(self) -> None:
        """Take up Xids as they come; without events, cards are judged by their answers alone."""
        thread = Thread("gpu-events")
        while True:
            if self._lib is not None and self._watched:
                await self._await_events(thread, self._lib)
            await asyncio.sleep(PERIOD)

    async def _await_events(self, thread: Thread, lib: Any) -> None:
        """Wait for events until there are other cards than now."""
        loop = asyncio.get_running_loop()
        taken = {uuid: one.card.index for uuid, one in self._watched.items() if not one.trouble}
        present, stop = set(self._watched), threading.Event()

        def told(index: int, code: int) -> None:
            loop.call_soon_threadsafe(self._xid, index, code, taken)

        waiting = thread.submit(lambda: _wait_events(lib, list(taken.values()), told, stop))
        done = asyncio.wrap_future(waiting)
        try:
            while not done.done() and set(self._watched) == present:
                await asyncio.wait([done], timeout=PERIOD)
        finally:
            stop.set()
        with contextlib.suppress(lib.NVMLError):
            await done

    def _xid(self, index: int, code: int, taken: dict[str, int]) -> None:
        before = self.inventory
        for uuid, number in taken.items():
            watched = self._watched.get(uuid)
            if number == index and watched is not None:
                self._xids.add(uuid, code)
                log.warning("GPU %d (%s): Xid %d", index, uuid, code)
        self._tell(before)


def _initialised() -> Any:
    lib = nvml.library()
    if lib is None:
        return None
    try:
        lib.nvmlInit()
    except lib.NVMLError:
        return None
    return lib


def _read(lib: Any, watched: Watched) -> None:
    watched.sample = _sampler(lib, watched).read()


def _alive(lib: Any, watched: Watched) -> None:
    _check(_sampler(lib, watched), watched.card)


def _sampler(lib: Any, watched: Watched) -> Sampler:
    """Return what reads the card; a new one once it was seen to be there."""
    if watched.sampler is None:
        fresh = Sampler(lib, watched.card.index)
        _check(fresh, watched.card)
        watched.sampler = fresh
    return watched.sampler


def _check(sampler: Sampler, card: Card) -> None:
    """Look whether a card is there, and still the same one.

    Raises:
        Lost: when it is not.
    """
    if sampler.uuid() != card.uuid:
        raise Lost(f"its index {card.index} is another card's now")


def _judge(watched: Watched) -> None:
    """Note whether the card answered, in time and truly."""
    asked = watched.asked
    if asked is None:
        return
    if not asked.done():
        since = watched.thread.since
        if since and time.monotonic() - since > nvml.PATIENCE:
            watched.trouble = f"NVML has not answered for {nvml.PATIENCE:.0f} s"
        return
    error = asked.exception()
    if error is None:
        watched.trouble = implausible(watched.sample)
        return
    watched.sampler = None
    watched.trouble = str(error) if isinstance(error, Lost) else f"NVML: {error}"


def implausible(sample: Sample) -> str:
    """Return what a reading says that cannot be; empty when all can."""
    values = sample.values
    used, total = values.get("memory_used", 0.0), values.get("memory_total", 0.0)
    if total and used > total:
        return f"NVML says {used:.0f} of {total:.0f} MiB are in use"
    for key in ("utilization", "memory_utilization"):
        if values.get(key, 0.0) > 100:
            return f"NVML says {key} is {values[key]:.0f} %"
    return ""


def _forget(done: asyncio.Future[Any]) -> None:
    """Take note of a failure, so that asyncio does not complain; it is judged by the card."""
    if not done.cancelled():
        done.exception()


def _with(cards: list[Card], lost: Card) -> list[Card]:
    """Return the cards with a lost one under its identity, where another has not its index."""
    there = [one for one in cards if (one.vendor, one.index) == (lost.vendor, lost.index)]
    if any(one.uuid for one in there):
        return cards
    others = [one for one in cards if one not in there]
    return sorted([*others, lost], key=lambda one: one.index)


def _wait_events(
    lib: Any, indices: list[int], told: Callable[[int, int], None], stop: threading.Event
) -> None:
    """Report Xids until told to stop; returns early where events are not supported."""
    events = lib.nvmlEventSetCreate()
    registered = False
    for index in indices:
        with contextlib.suppress(lib.NVMLError):
            lib.nvmlDeviceRegisterEvents(nvml.handle(lib, index), XID, events)
            registered = True
    try:
        while registered and not stop.is_set():
            try:
                event = lib.nvmlEventSetWait_v2(events, EVENTS_WAIT)
            except lib.NVMLError as error:
                if error.value != lib.NVML_ERROR_TIMEOUT:
                    return
                continue
            told(int(lib.nvmlDeviceGetIndex(event.device)), int(event.eventData))
    finally:
        lib.nvmlEventSetFree(events)
