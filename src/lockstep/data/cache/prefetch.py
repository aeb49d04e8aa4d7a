"""Fetches ahead of the readers, in the order in which they will read, bounded in bytes."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from lockstep.data.cache.sources import SourceFailed
from lockstep.data.cache.supply import Supply

log = logging.getLogger(__name__)

AHEAD: Final = 256 << 20
"""Bytes that are fetched before they are asked for, at most."""
AT_ONCE: Final = 8
_PAUSE: Final = 1.0
"""Seconds without prefetching after a source failed."""


class Prefetch:
    """Keeps what is read next on the node; ``run`` is for a task of its own."""

    def __init__(self, supply: Supply, ahead: int = AHEAD) -> None:
        self._supply, self._ahead = supply, ahead
        self._event = asyncio.Event()

    def read(self, index: int) -> None:
        """Take note that a file is read."""
        self._supply.expected.read(index)
        if self._supply.expected.known:
            self._event.set()

    def wake(self) -> None:
        """Look again at what comes next."""
        self._event.set()

    async def run(self) -> None:
        """Fetch ahead until cancelled."""
        while True:
            await self._event.wait()
            self._event.clear()
            try:
                await self._once()
            except SourceFailed as error:
                log.info("prefetching pauses: %s", error)
                await asyncio.sleep(_PAUSE)

    async def _once(self) -> None:
        """Fetch what the next bytes lack; a change of what comes next is seen after each round."""
        stock = self._supply.stock
        room = min(self._ahead, max(1, self._supply.terms.account.limit // 4))
        wanted: list[tuple[int, int]] = []
        for index in self._supply.expected.ahead():
            room -= int(stock.chunks.sizes[index])
            if not stock.whole(index):
                wanted += [(index, one) for one in stock.chunks.all_of(index) if not stock.has(one)]
            if room <= 0 or len(wanted) >= 4 * AT_ONCE:
                break
        for at in range(0, len(wanted), AT_ONCE):
            batch = wanted[at : at + AT_ONCE]
            await asyncio.gather(*(self._supply.chunk(*one) for one in batch))
            if not any(stock.has(chunk) for _, chunk in batch):
                return  # all that is here is needed sooner
        if len(wanted) >= 4 * AT_ONCE:
            self._event.set()
