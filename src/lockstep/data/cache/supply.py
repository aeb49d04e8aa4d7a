"""Brings chunks to this node: from the disk, from the node that owns them, or from the store.

However many ask for a chunk at once, it is fetched once. What finds room on the disk is kept; the
last few that do not are kept in memory, since readers take a chunk in several steps.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from lockstep.data.cache.peers import PeerFailed
from lockstep.data.cache.serving import TOGETHER
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.cache.stock import Stock
from lockstep.data.cache.store_reads import AT_ONCE, StoreReads, Terms
from lockstep.data.core.epochs import Expected
from lockstep.data.core.owners import owner
from lockstep.data.core.room import NEVER, victims
from lockstep.data.core.tiers import in_blocks

log = logging.getLogger(__name__)

LOOSE: Final = 8
"""Chunks without room on the disk that are kept in memory."""
TINY: Final = 64 << 10
"""Files up to so many bytes are asked of other nodes several at a time."""
MOST_GIVEN: Final = AT_ONCE * TOGETHER
"""Chunks that came together and wait to be kept."""
_INLINE: Final = 256 << 10
"""What is written by the loop itself; a thread costs more than so short a write."""
_SHARE: Final = 64
"""A dataset evicts at least this part of its room at once, as choosing looks at all files."""


@dataclass
class Counts:
    """Bytes by where they came from, and what readers waited."""

    disk: int = 0
    memory: int = 0
    peer: int = 0
    store: int = 0
    served: int = 0
    """Bytes given to other nodes."""
    evicted: int = 0
    hits: int = 0
    misses: int = 0
    waited: float = 0.0
    """Seconds that readers waited for bytes that were not here."""


class Pace:
    """A limit of bytes a second."""

    def __init__(self, rate: int) -> None:
        self._rate, self._next = rate, 0.0

    async def take(self, size: int) -> None:
        """Wait until *size* bytes may come."""
        now = time.monotonic()
        due = max(now, self._next)
        self._next = due + size / self._rate
        await asyncio.sleep(due - now)


class Supply:
    """The chunks of one version on this node."""

    def __init__(
        self,
        stock: Stock,
        terms: Terms,
        *,
        renew: Callable[[], Awaitable[None]],
        make_room: Callable[[int], int],
        trouble: Callable[[SourceFailed], None],
    ) -> None:
        """Serve *stock* by *terms*; *renew* opens the sources again, *make_room* asks the node for
        bytes of datasets that nothing reads and returns how many went, *trouble* takes what fails.
        """
        self.stock, self.terms = stock, terms
        self.counts = Counts()
        self.expected = Expected(len(stock.manifest.entries))
        self._make_room, self._trouble = make_room, trouble
        self.store = StoreReads(terms, renew)
        self._flights: dict[int, asyncio.Future[Any]] = {}
        self._loose: OrderedDict[int, Any] = OrderedDict()
        self._given: dict[int, bytes] = {}
        """Small chunks that came together from their owner and are not kept yet."""
        self._version = stock.manifest.version

    # --- for readers ---

    def here(self, index: int, start: int, end: int) -> bytes | None:
        """Return bytes that are on this node, from any thread."""
        data = self.stock.read(index, start, end)
        if data is not None:
            self.counts.disk += len(data)
            self.counts.hits += 1
        return data

    async def read(self, index: int, start: int, end: int) -> bytes:
        """Return bytes of the file *index*, fetched where they are not here.

        Raises:
            OSError: ``ESTALE`` when the object is another now, ``EIO`` when it does not come.
        """
        self.counts.misses += 1
        since = time.monotonic()
        parts = list[Any]()
        try:
            for number in self.stock.chunks.of(index, start, end):
                first, last = self.stock.chunks.span(index, number)
                low, high = max(start, first), min(end, last)
                data: Any = self.stock.read(index, low, high)
                if data is None:
                    data = memoryview(await self.chunk(index, number))[low - first : high - first]
                parts.append(data)
        except SourceFailed as error:
            self._trouble(error)
            code = errno.ESTALE if error.reason == "SourceChanged" else errno.EIO
            raise OSError(code, str(error)) from error
        finally:
            self.counts.waited += time.monotonic() - since
        return b"".join(parts)

    async def chunk(self, index: int, number: int, *, for_peer: bool = False) -> Any:
        """Return the bytes of a chunk; kept here where there is room.

        Raises:
            SourceFailed: when it does not come within the timeout.
        """
        if (loose := self._loose.pop(number, None)) is not None:
            self.counts.memory += len(loose)
            await self._keep(index, number, loose)  # there may be room by now
            return loose
        while (flight := self._flights.get(number)) is not None:
            try:
                return await asyncio.shield(flight)
            except asyncio.CancelledError:
                # Either this reader goes, or the one that fetched went: then this one fetches.
                if not flight.cancelled() or _cancelled():
                    raise
        flight = self._flights[number] = asyncio.get_running_loop().create_future()
        try:
            data = await self._bring(index, number, for_peer)
        except asyncio.CancelledError:
            flight.cancel()
            raise
        except BaseException as error:
            flight.set_exception(error)
            flight.exception()  # raised here; without this the loop would complain
            raise
        else:
            flight.set_result(data)
            return data
        finally:
            del self._flights[number]

    async def _bring(self, index: int, number: int, for_peer: bool) -> Any:
        start, end = self.stock.chunks.span(index, number)
        if self.stock.has(number):
            found = await asyncio.to_thread(self.stock.read, index, start, end)
            if found is not None:
                return found
        if end == start:
            data: Any = b""
        elif for_peer or (data := await self._from_peer(index, number)) is None:
            data = await self.store.read(self.stock.manifest.entries[index], start, end)
            self.counts.store += len(data)
        await self._keep(index, number, data)
        return data

    # --- where it comes from ---

    async def _from_peer(self, index: int, number: int) -> Any:
        """Return the chunk from its owner; none when this node owns it, or no other answers."""
        peers = self.terms.peers
        if peers is None:
            return None
        while True:
            who = owner(self._version, number, peers.alive())
            if who == peers.me:
                # A node that has all of it spares the store another read.
                complete = peers.complete()
                if not complete:
                    return None
                who = owner(self._version, number, complete)
            if (given := self._given.pop(number, None)) is not None:
                self.counts.peer += len(given)
                return given
            try:
                data = await peers.chunk(who, self._version, number, self.terms.timeout)
            except PeerFailed as error:
                log.warning("%s gives nothing of chunk %d: %s", who, number, error)
                peers.lost(who)
                continue
            start, end = self.stock.chunks.span(index, number)
            if len(data) != end - start:
                peers.lost(who)
                continue
            self.counts.peer += len(data)
            return data

    # --- where it goes ---

    async def _keep(self, index: int, number: int, data: Any) -> None:
        need = in_blocks(len(data))
        if not self.admit(index, need):
            self._loose[number] = data
            if len(self._loose) > LOOSE:
                self._loose.popitem(last=False)
            return
        taken = 0
        try:
            if len(data) <= _INLINE:
                taken = self.stock.put(index, number, data)
            else:
                taken = await asyncio.to_thread(self.stock.put, index, number, data)
        except OSError as error:
            # A full disk costs speed, not the read.
            self._trouble(SourceFailed("DiskFull", f"{self.stock.place}: {error.strerror}"))
            self._loose[number] = data
        finally:
            self.terms.account.settle(need, taken)

    def admit(self, index: int, need: int) -> bool:
        """Reserve *need* bytes for the file *index*, evicting what is needed later."""
        account = self.terms.account
        if account.reserve(need):
            return True
        if self._make_room(need) and account.reserve(need):
            return True
        if self.terms.bound or not self.expected.known:
            return False
        needed = self.expected.needed()
        if needed[index] >= NEVER:
            return False
        at_least = max(need, account.limit // _SHARE)
        held = self.stock.held
        gone = victims(needed, held, at_least, int(needed[index]), None) or victims(
            needed, held, need, int(needed[index]), None
        )
        for one in gone:
            self.evict(one)
        return account.reserve(need)

    def evict(self, index: int) -> int:
        """Let go of the file *index*; return the bytes that are free then."""
        freed = self.stock.evict(index)
        self.terms.account.free(freed)
        self.counts.evicted += freed
        return freed

    def shrink(self, size: int) -> int:
        """Let go of *size* bytes, what is needed last first; return how many went."""
        needed, freed = self.expected.needed(), 0
        for one in victims(needed, self.stock.held[:], min(size, self.stock.used), -1, None):
            freed += self.evict(one)
        return freed

    # --- many at once ---

    async def fill(self, indices: Iterable[int], pace: Pace | None = None) -> bool:
        """Bring whole files here in their order; tell whether all of them found room.

        Raises:
            SourceFailed: when one does not come; what has arrived stays.
        """
        groups, complete = self._grouped(indices), True

        async def work() -> None:
            nonlocal complete
            for group in groups:
                if not complete:
                    return
                await self._ask_together(group)
                for index in group:
                    complete = await self._fill_one(index, pace) and complete

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(AT_ONCE):
                    tasks.create_task(work())
        except* Exception as failures:
            first: BaseException = failures
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from None
        return complete

    async def _fill_one(self, index: int, pace: Pace | None) -> bool:
        """Bring a whole file here; tell whether it found room."""
        missing = [one for one in self.stock.chunks.all_of(index) if not self.stock.has(one)]
        if pace is not None:
            await pace.take(int(self.stock.chunks.sizes[index]))
        if len(missing) == 1:
            await self.chunk(index, missing[0])
            missing = []
        for batch in (missing[at : at + 4] for at in range(0, len(missing), 4)):
            await asyncio.gather(*(self.chunk(index, one) for one in batch))
        return self.stock.whole(index)

    def _grouped(self, indices: Iterable[int]) -> Iterator[list[int]]:
        """Yield files in their order: small ones together where other nodes may give them."""
        together: list[int] = []
        for index in indices:
            peers = self.terms.peers
            if peers is None or len(peers.alive()) < 2 or self.stock.chunks.sizes[index] > TINY:
                yield [index]
                continue
            together.append(index)
            if len(together) == TOGETHER:
                yield together
                together = []
        if together:
            yield together

    async def _ask_together(self, group: list[int]) -> None:
        """Ask the owners of a group's files for all that each owns, in one request each."""
        peers = self.terms.peers
        if peers is None or len(group) < 2:
            return
        owned: dict[str, list[int]] = {}
        alive = peers.alive()
        for number in (self.stock.chunks.all_of(index).start for index in group):
            if not self.stock.has(number) and number not in self._flights:
                owned.setdefault(owner(self._version, number, alive), []).append(number)
        owned.pop(peers.me, None)
        asked = [peers.chunks(who, self._version, one) for who, one in owned.items() if one[1:]]
        for found in await asyncio.gather(*asked):
            self._given.update(found)
        while len(self._given) > MOST_GIVEN:  # a reader had them otherwise
            del self._given[next(iter(self._given))]


def _cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
