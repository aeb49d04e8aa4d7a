"""Reconciling: a function that is called for each key until it has nothing left to do."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

from lockstep.api.meta import controller_of
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire
from lockstep.kube.cache import Change, Key, key_of
from lockstep.kube.errors import ApiError, NotLeading
from lockstep.kube.informer import Informer
from lockstep.runtime.queue import WorkQueue
from lockstep.runtime.refusals import stale

T = TypeVar("T", bound=Wire)

log = logging.getLogger(__name__)

Reconcile = Callable[[Key], Awaitable[float | None]]

LASTING = 5.0
"""Seconds of wait from which on a stale view is a warning: caches are never behind for so long."""

__all__ = ["Controller", "Key", "Reconcile", "controlled_by"]


class Observer(Protocol):
    """Is told how a controller works; metrics are made of it."""

    def depth(self, controller: str, ready: int) -> None:
        """Take the number of keys that are ready."""

    def waited(self, controller: str, seconds: float) -> None:
        """Take how long a key was ready before the work on it began."""

    def reconciled(self, controller: str, seconds: float, outcome: str) -> None:
        """Take how long a call lasted and how it ended: success, requeue or error."""


class _Unobserved:
    def depth(self, controller: str, ready: int) -> None: ...
    def waited(self, controller: str, seconds: float) -> None: ...
    def reconciled(self, controller: str, seconds: float, outcome: str) -> None: ...


def _own_key(obj: Any) -> Iterable[Key]:
    return (key_of(obj),)


class Controller:
    """Calls *reconcile* for keys whose objects changed, a few at once, but never twice at a time
    for one key.

    *reconcile* looks at the present state, not at the change, and returns the seconds after
    which it wants to be called again, or None. When it raises, it is called again after a wait
    that grows with each failure.
    """

    def __init__(self, name: str, reconcile: Reconcile, *, workers: int = 4) -> None:
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self._queue: WorkQueue[Key] = WorkQueue()
        self._wake = asyncio.Event()
        self._draining = False
        self._followed: list[tuple[Informer[Any], Callable[[Any], Iterable[Key]]]] = []
        self.observer: Observer = _Unobserved()

    def follow(
        self, informer: Informer[T], keys: Callable[[T], Iterable[Key]] = _own_key
    ) -> Controller:
        """Call for *keys* of each object of *informer* that changes: by default its own key."""
        self._followed.append((informer, keys))
        return self

    def drain(self) -> None:
        """Take no further key: ``run`` returns when the calls that are under way have ended."""
        self._draining = True
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled, which cancels calls that are under way as well, or drained."""
        self._draining = False
        unsubscribes = [
            informer.subscribe(self._on_change(keys)) for informer, keys in self._followed
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work())
        finally:
            for unsubscribe in unsubscribes:
                unsubscribe()

    def _on_change(self, keys: Callable[[T], Iterable[Key]]) -> Callable[[Change[T]], None]:
        def handle(change: Change[T]) -> None:
            now = time.monotonic()
            # An object that moves from one key to another concerns both.
            for obj in (change.old, change.new):
                if obj is not None:
                    for key in keys(obj):
                        self._queue.add(key, now)
            self._notice()

        return handle

    def _notice(self) -> None:
        self.observer.depth(self.name, len(self._queue))
        self._wake.set()

    async def _work(self) -> None:
        while (key := await self._next()) is not None:
            try:
                await self._call(key)
            finally:
                self._queue.done(key, time.monotonic())
                self._notice()

    async def _next(self) -> Key | None:
        while not self._draining:
            taken = self._queue.take(time.monotonic())
            if taken is not None:
                key, waited = taken
                self.observer.waited(self.name, waited)
                self.observer.depth(self.name, len(self._queue))
                return key
            self._wake.clear()
            due = self._queue.next_due()
            try:
                async with asyncio.timeout(
                    None if due is None else max(0.0, due - time.monotonic())
                ):
                    await self._wake.wait()
            except TimeoutError:
                continue
        return None

    async def _call(self, key: Key) -> None:
        started = time.monotonic()
        outcome = "error"
        try:
            again = await self._reconcile(key)
            outcome = "success" if again is None else "requeue"
        except Exception as error:
            outcome = "stale" if stale(error) else "error"
            self._failed(key, error)
        else:
            self._queue.forget(key)
            if again is not None:
                self._queue.add_after(key, again, time.monotonic())
        finally:
            self.observer.reconciled(self.name, time.monotonic() - started, outcome)

    def _failed(self, key: Key, error: Exception) -> None:
        wait = self._queue.retry(key, time.monotonic())
        name = "/".join(part for part in key if part)
        if isinstance(error, NotLeading) or (stale(error) and wait < LASTING):
            # Another process wrote first, or the caches are behind: the next call sees it.
            log.debug("%s %s: %s; again in %.1f s", self.name, name, error, wait)
        elif isinstance(error, ApiError):
            log.warning("%s %s: %s; again in %.1f s", self.name, name, error, wait)
        else:
            log.error("%s %s failed; again in %.1f s", self.name, name, wait, exc_info=error)


def controlled_by(resource: Resource[Any]) -> Callable[[Any], Iterable[Key]]:
    """Return a function that names the object of *resource* that controls the one given."""

    def keys(obj: Any) -> Iterable[Key]:
        found = controller_of(obj.metadata)
        if found is None or found.kind != resource.kind:
            return ()
        if found.api_version != resource.api_version:
            return ()
        return ((obj.metadata.namespace, found.name),)

    return keys
