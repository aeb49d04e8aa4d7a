"""Reads from a dataset's stores: how many at once, and how long they wait for one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api.backoff import Backoff, Pauses
from lockstep.data.cache.opening import AnySource
from lockstep.data.cache.peers import Peers
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.core.manifest import Entry
from lockstep.data.core.room import Account

AT_ONCE: Final = 32
"""Requests to the store under way at the same time for one dataset."""
LARGE_AT_ONCE: Final = 8
"""Of those, requests for more than a mebibyte: a slow store still ends each within the timeout."""
_SMALL: Final = 1 << 20
TIMEOUT: Final = 60.0
"""Seconds for which a read waits for a store that fails, unless the dataset says otherwise."""
REFUSED: Final = 20.0
"""Of these, seconds for which all reads together wait for a key that the store refuses."""
_WORTH_WAITING: Final = ("SourceUnreachable", "SourceCutShort", "SourceRefused", "SecretMissing")
_PAUSES = Backoff(initial=0.2, cap=5.0, jitter=0.2)


@dataclass
class Terms:
    """What a supply goes by, renewed by the keeper."""

    sources: Sequence[AnySource] = ()
    timeout: float = TIMEOUT
    account: Account = field(default_factory=lambda: Account(0, 0))
    bound: bool = False
    """Whether pods see the real files, so that none may go."""
    peers: Peers | None = None


class StoreReads:
    """Asks the sources in *terms*; *renew* opens them again with the keys that there are now."""

    def __init__(self, terms: Terms, renew: Callable[[], Awaitable[None]]) -> None:
        self.terms, self._renew = terms, renew
        self._refused: dict[int, float] = {}
        """Since when a mount's store refuses the key."""
        self.failing: SourceFailed | None = None
        """Why the last read failed; none where it did not."""
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._large_slots = asyncio.Semaphore(LARGE_AT_ONCE)

    async def read(self, entry: Entry, start: int, end: int) -> Any:
        """Return the bytes *start* to *end* of *entry*.

        Raises:
            SourceFailed: when they do not come within the timeout.
        """
        async with self._slots if end - start <= _SMALL else self._large_slots:
            return await self._ask_store(entry, start, end)

    async def _ask_store(self, entry: Entry, start: int, end: int) -> Any:
        try:
            data = await self._ask_patiently(entry, start, end)
        except SourceFailed as error:
            self.failing = error
            raise
        self._refused.pop(entry.mount, None)
        self.failing = None
        return data

    async def _ask_patiently(self, entry: Entry, start: int, end: int) -> Any:
        now = asyncio.get_running_loop().time
        until = now() + self.terms.timeout
        pauses, refused = Pauses(_PAUSES), False
        while True:
            try:
                if refused:
                    await self._renew()  # a key may have been replaced meanwhile
                source = self.terms.sources[entry.mount]
                async with asyncio.timeout(max(0.1, until - now())):
                    return await source.read(entry, start, end)
            except TimeoutError:
                words = f"{self.terms.sources[entry.mount].uri}: {entry.key} did not come within "
                words += f"{self.terms.timeout:g} s"
                raise SourceFailed("SourceSlow", words) from None
            except SourceFailed as error:
                before, refused = refused, refused or error.reason == "SourceRefused"
                if refused:
                    since = self._refused.setdefault(entry.mount, now())
                    until = min(until, since + REFUSED)
                pause = pauses.failed()
                late = until - now() <= pause
                # The key of a refusal is asked for once more, however late it is.
                if error.reason not in _WORTH_WAITING or (late and refused == before):
                    raise
                await asyncio.sleep(0 if late else pause)
