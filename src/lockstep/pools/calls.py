"""Calls of providers, in the background: at most one for each request or machine at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from lockstep.api.core import NODES, Node
from lockstep.api.node_pool import PoolRequest
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.pools.core.book import Book, Failure, Outcome
from lockstep.pools.core.pool import Pool, slot_of
from lockstep.pools.providers.contract import ProviderError
from lockstep.pools.providers.registry import Providers

log = logging.getLogger(__name__)

REST = 5.0
"""Seconds after which a machine that could not be removed is tried again."""

Key = tuple[str, str, str]


class Calls:
    """What providers are being told, and how it ended."""

    def __init__(self, providers: Providers, client: Client, wake: Callable[[], None]) -> None:
        self._providers = providers
        self._client = client
        self._wake = wake
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._outcomes: dict[str, list[Outcome]] = {}
        self._going: dict[str, set[int]] = {}
        """By pool the slots whose machines are being removed."""

    def take(self, pool: str) -> list[Outcome]:
        """Return the calls of a pool that have ended since it was asked last."""
        return self._outcomes.pop(pool, [])

    def blocked(self, pool: str) -> frozenset[int]:
        """Return the slots whose machines are being removed."""
        return frozenset(self._going.get(pool, ()))

    def send(self, pools: Iterable[Pool], book: Book) -> None:
        """Tell providers of requests that they do not know yet, and of machines to remove."""
        for pool in pools:
            for request in pool.requests:
                if not request.sent:
                    self._start(("create", pool.name, request.id), self._create(pool, request))
            for slot, name in book.drops.get(pool.name, {}).items():
                if slot not in pool.coming:
                    self._remove(pool, slot, self._delete(pool, slot, name))

    def give_back(self, pool: Pool, node: Node, empty: Callable[[str], Awaitable[bool]]) -> None:
        """Have a cordoned node removed, if the server still shows nothing on it."""
        slot = slot_of(node)
        if slot is not None:
            self._remove(pool, slot, self._give_back(pool, slot, node, empty))

    def audit(self, pool: Pool) -> None:
        """Ask a provider which machines it has."""
        self._start(("present", pool.name, ""), self._present(pool))

    async def close(self) -> None:
        """End all calls."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _remove(self, pool: Pool, slot: int, work: Coroutine[Any, Any, None]) -> None:
        self._going.setdefault(pool.name, set()).add(slot)
        self._start(("delete", pool.name, str(slot)), work)

    def _start(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        if key in self._running:
            work.close()
            return
        task = self._running[key] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: Key, task: asyncio.Task[None]) -> None:
        del self._running[key]
        kind, pool, what = key
        if kind == "delete":
            self._going[pool].discard(int(what))
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("pool %s: %s failed", pool, kind, exc_info=error)
        self._wake()

    def _say(self, outcome: Outcome) -> None:
        self._outcomes.setdefault(outcome.pool, []).append(outcome)

    async def _create(self, pool: Pool, request: PoolRequest) -> None:
        error = None
        slots: Sequence[int] = [slot for slot in request.slots if slot not in pool.names]
        try:
            await self._providers.of(pool).create(pool, request, slots)
        except ProviderError as failed:
            error = Failure(failed.reason, str(failed))
        self._say(Outcome("create", pool.name, request.id, error=error))

    async def _delete(self, pool: Pool, slot: int, name: str) -> None:
        try:
            provider = self._providers.of(pool)
            await provider.delete(pool, {slot: name})
            if name and not provider.removes_nodes:
                await self._forget(name)
        except (ProviderError, ApiError) as error:
            # The next audit finds the machine again.
            log.warning("pool %s: slot %d cannot be removed: %s", pool.name, slot, error)
            await asyncio.sleep(REST)

    async def _give_back(
        self, pool: Pool, slot: int, node: Node, empty: Callable[[str], Awaitable[bool]]
    ) -> None:
        name = node.metadata.name
        try:
            if not await empty(name):
                return
            provider = self._providers.of(pool)
            await provider.delete(pool, {slot: name})
            if not provider.removes_nodes:
                await self._forget(name, node.metadata.uid)
        except (ProviderError, ApiError) as error:
            log.warning("pool %s: node %s cannot be given back: %s", pool.name, name, error)
            await asyncio.sleep(REST)

    async def _forget(self, name: str, uid: str | None = None) -> None:
        try:
            await self._client.delete(NODES, name, uid=uid)
        except NotFound:
            return

    async def _present(self, pool: Pool) -> None:
        sent = frozenset(request.id for request in pool.requests if request.sent)
        try:
            found = await self._providers.of(pool).present(pool)
        except ProviderError as error:
            log.warning("pool %s: its machines cannot be listed: %s", pool.name, error)
            return
        told = Outcome("present", pool.name, present=found.slots, lost=found.lost, sent=sent)
        self._say(told)
