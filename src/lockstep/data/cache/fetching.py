"""Fetching files from their sources: many at once, large ones in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from lockstep.data.cache.shelf import Draft
from lockstep.data.cache.sources import Source
from lockstep.data.core.manifest import Entry

PART: Final = 8 << 20
"""Bytes that are asked for at once of a large object."""
AT_ONCE: Final = 32
"""Requests under way at the same time for one dataset."""
_INLINE: Final = 256 << 10
"""What is written by the loop itself; a thread costs more than so short a write."""


class Fetcher:
    """Brings files of one version to their place."""

    def __init__(
        self, sources: Sequence[Source], place: Path, arrived: Callable[[Entry], None]
    ) -> None:
        self._sources, self._place, self._arrived = sources, place, arrived
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run(self, entries: Sequence[Entry]) -> None:
        """Fetch *entries* in their order; *arrived* is called for each that is whole.

        Raises:
            SourceFailed: when a source fails; what has arrived stays.
            OSError: when the disk fails.
        """
        waiting = iter(entries)

        async def work() -> None:
            for entry in waiting:
                await self._fetch(entry)
                self._arrived(entry)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE, len(entries))):
                    group.create_task(work())
        except* Exception as failures:
            first: BaseException = failures
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from None

    async def _fetch(self, entry: Entry) -> None:
        draft = Draft(self._place, entry)
        try:
            if entry.size <= PART:
                await self._part(draft, entry, 0, entry.size)
            else:
                async with asyncio.TaskGroup() as group:
                    for start in range(0, entry.size, PART):
                        end = min(start + PART, entry.size)
                        group.create_task(self._part(draft, entry, start, end))
        except BaseException:
            draft.drop()
            raise
        draft.finish()

    async def _part(self, draft: Draft, entry: Entry, start: int, end: int) -> None:
        if start == end:
            return
        async with self._slots:
            data = await self._sources[entry.mount].read(entry, start, end)
            if len(data) <= _INLINE:
                draft.write(data, start)
            else:
                await asyncio.to_thread(draft.write, data, start)
