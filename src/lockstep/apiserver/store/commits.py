"""Group commit: writes that arrive while one transaction runs share the next one."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from lockstep.apiserver.store.log import Log, Row
from lockstep.apiserver.store.record import Event, Record

logger = logging.getLogger(__name__)

# Rows that one transaction's compaction deletes at most, so that no writer waits long for it.
_DELETED_AT_ONCE = 500


class StoreUnavailable(Exception):
    """The disk refused a transaction; nothing of it was written."""


class _Write(NamedTuple):
    event: Event
    done: asyncio.Future[Record]


class Committer:
    """Hands batches of events to the log, one transaction at a time, in their order.

    The transaction runs in a thread of its own, so that the event loop decides the next batch
    while the disk syncs this one. *applied* is called with the events of each durable batch
    before any of their writers is told; *failed* when a batch could not be written, which also
    fails everything decided on top of it.
    """

    def __init__(
        self, log: Log, applied: Callable[[Sequence[Event]], None], failed: Callable[[], None]
    ) -> None:
        self._log = log
        self._applied = applied
        self._failed = failed
        self._waiting: list[_Write] = []
        self._compacted = log.compacted
        self._freed: list[int] = []
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    def submit(self, event: Event) -> asyncio.Future[Record]:
        """Queue *event*; the future is done once it is durable."""
        loop = asyncio.get_running_loop()
        write = _Write(event, loop.create_future())
        self._waiting.append(write)
        if self._running is None:
            self._running = loop.create_task(self._drain())
        return write.done

    def compact(self, upto: int, freed: list[int]) -> None:
        """Queue the deletion of the rows *freed* by giving up history up to *upto*.

        They go a few with each transaction from the next one on, the first of which says how
        much history is gone; what a crash leaves is found when the log is next read.
        """
        self._compacted = upto
        self._freed.extend(freed)

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._commit()
        finally:
            self._running = None

    async def _commit(self) -> None:
        batch, self._waiting = self._waiting, []
        freed = self._freed[:_DELETED_AT_ONCE]
        del self._freed[:_DELETED_AT_ONCE]
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._write, batch, self._compacted, freed)
        except Exception as error:
            logger.exception("a transaction of %d writes failed", len(batch))
            lost, self._waiting = [*batch, *self._waiting], []
            self._failed()
            for write in lost:
                if not write.done.done():
                    write.done.set_exception(StoreUnavailable(self._log.explain(error)))
            return
        self._applied([write.event for write in batch])
        for write in batch:
            if not write.done.done():
                write.done.set_result(write.event.record)

    def _write(self, batch: list[_Write], upto: int, freed: list[int]) -> None:
        self._log.append(
            [
                Row(event.record.revision, *event.record.key, int(event.deleted), event.record.data)
                for event, _ in batch
            ]
        )
        if not freed:
            return
        try:
            self._log.compact(upto, freed)
        except sqlite3.Error:
            # The batch itself is durable; a file that grows is the lesser evil.
            logger.exception("compaction up to %d failed", upto)

    async def close(self) -> None:
        """Wait for what is under way and close the log."""
        while self._running is not None:
            await asyncio.wait([self._running])
        await asyncio.get_running_loop().run_in_executor(self._thread, self._log.close)
        self._thread.shutdown()
