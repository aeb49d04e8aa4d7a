"""An informer: a local, always current copy of a collection, with indices and subscribers."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Generic, TypeVar

from lockstep.api.backoff import Backoff, Pauses
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire
from lockstep.kube.cache import Change, Index, Key, key_of, meta_of
from lockstep.kube.client import Client
from lockstep.kube.codec import Unreadable
from lockstep.kube.errors import ApiError, ConfigError, NotFound
from lockstep.kube.follower import Follower, Plan, Step
from lockstep.kube.listing import Listing

T = TypeVar("T", bound=Wire)

log = logging.getLogger(__name__)

SILENCE = 130.0
"""Seconds without a byte after which a watch is opened anew; bookmarks come each minute."""
WATCH_SECONDS = (240.0, 480.0)
"""How long a watch lasts, chosen at random so that reconnections spread out."""
BACKOFF = Backoff(initial=0.2, cap=10.0, jitter=0.5)

Handler = Callable[[Change[T]], None]


class Informer(Generic[T]):
    """Follows one collection of the API server and tells subscribers how it changes.

    Reads are local and never wait. What they return is shared: it is frozen, and must stay so.
    ``run`` keeps the copy current through lost connections, restarts and compactions of the
    server; it only ends when it is cancelled.
    """

    def __init__(
        self,
        client: Client,
        res: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        indices: Mapping[str, Index] | None = None,
        transform: Callable[[T], T] | None = None,
        optional: bool = False,
        backoff: Backoff = BACKOFF,
        silence: float = SILENCE,
        rng: random.Random | None = None,
    ) -> None:
        self.resource = res
        self.fresh = False
        """Whether the first state must hold all that was written before it was asked for.

        A server may begin a stream from a cache that lags behind; a fresh informer asks for lists.
        """
        self.optional = optional
        """Whether the server may lack the kind, as one of a dialect: then there are no objects, and
        it is asked again and again whether it has it now."""
        self.known_at: float | None = None
        """All that was written before this time of the event loop is in the copy, if a time is
        known; streams tell none."""
        self.problem = ""
        """Why the server cannot be followed at the moment; empty while it can."""
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._follower: Follower[T] = Follower(indices, transform)
        self._handlers: list[Handler[T]] = []
        self._synced = asyncio.Event()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._pauses = Pauses(backoff, self._rng)
        self._silence = silence

    def get(self, namespace: str, name: str) -> T | None:
        """Return an object; *namespace* is empty for what is cluster-scoped."""
        return self._follower.cache.get((namespace, name))

    def __iter__(self) -> Iterator[T]:
        return iter(self._follower.cache)

    def __len__(self) -> int:
        return len(self._follower.cache)

    def all_keys(self, *_: object) -> list[Key]:
        """Return the keys of all objects: for a change that concerns each of them."""
        return [key_of(obj) for obj in self]

    def by_index(self, index: str, value: str) -> list[T]:
        """Return the objects that *index* holds under *value*."""
        return self._follower.cache.by_index(index, value)

    def add_index(self, name: str, function: Index) -> None:
        """Keep another index; one of that name that is there already stays as it is."""
        self._follower.cache.add_index(name, function)

    @property
    def synced(self) -> bool:
        """Whether the whole collection has been read once."""
        return self._follower.synced

    @property
    def resource_version(self) -> str:
        """Return the version up to which changes are known; empty before the first sync."""
        return self._follower.resource_version

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Call *handler* for what is there, as additions, and for each change from then on.

        Handlers run in the informer's own task: they must be quick and must not wait. Returns a
        function that ends the subscription.
        """
        for obj in self._follower.cache:
            _tell(handler, Change(None, obj))
        self._handlers.append(handler)

        def unsubscribe() -> None:
            if handler in self._handlers:
                self._handlers.remove(handler)

        return unsubscribe

    async def wait_synced(self) -> None:
        """Return once the whole collection has been read."""
        await self._synced.wait()

    async def catch_up(self) -> None:
        """Bring the copy to what the server has now, however far the watch is behind.

        Subscribers are told in the task of the caller. The server must not be older than the copy.

        Raises:
            ApiError: when the server cannot be read.
        """
        asked, listing = await self._read()
        self._publish(self._follower.caught_up(listing.items, listing.resource_version))
        self.known_at = asked

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        clock = asyncio.get_running_loop().time
        if self.fresh:
            self._follower.read_in_pages()
        while True:
            started = clock()
            error: ApiError | None = None
            try:
                await self._carry_out(self._follower.plan())
            except NotFound as failure:
                error = failure
                if self.optional and not self.synced:
                    self._publish(self._follower.listed((), ""))
            except ApiError as failure:
                error = failure
            except ConfigError as failure:
                # Such as a token that cannot be read now.
                error = ApiError(0, "Config", str(failure))
            self._note(error)
            ending = self._follower.ended(error, clock() - started)
            if ending.healthy:
                self._pauses.worked()
            if ending.wait:
                await asyncio.sleep(self._pauses.failed())

    async def _carry_out(self, plan: Plan) -> None:
        if plan.step is Step.LIST:
            asked, listing = await self._read()
            self._publish(self._follower.listed(listing.items, listing.resource_version))
            self.known_at = asked
            return
        events = self._client.watch(
            self.resource,
            self._namespace,
            resource_version=plan.resource_version,
            timeout=self._rng.uniform(*WATCH_SECONDS),
            initial_events=plan.step is Step.STREAM,
            silence=self._silence,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        async with aclosing(events):
            async for event in events:
                if event.unreadable is not None:
                    self._report([event.unreadable])
                self._publish(self._follower.event(event))

    async def _read(self) -> tuple[float, Listing[T]]:
        """Return all objects, and when they were asked for by the event loop's time."""
        asked = asyncio.get_running_loop().time()
        listing = await self._client.list(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        self._report(listing.unreadable)
        return asked, listing

    def _publish(self, changes: Iterable[Change[T]]) -> None:
        for change in changes:
            for handler in tuple(self._handlers):
                _tell(handler, change)
        if self._follower.synced and not self._synced.is_set():
            self._synced.set()
            log.debug("%s: synced, %d objects", self.resource.plural, len(self))
        if self._follower.synced:
            self.problem = ""

    def _note(self, error: ApiError | None) -> None:
        text = "" if error is None or error.status == 410 else str(error)
        if self.optional and error is not None and error.status == 404:
            text = ""
        if text and text != self.problem:
            log.warning("%s cannot be followed: %s", self.resource.plural, text)
        self.problem = text

    def _report(self, unreadable: Iterable[Unreadable]) -> None:
        for one in unreadable:
            name = f"{one.namespace}/{one.name}" if one.namespace else one.name
            log.error("%s %s is left out: %s", self.resource.kind, name, one.problem)


def _tell(handler: Handler[T], change: Change[T]) -> None:
    try:
        handler(change)
    except Exception:
        log.exception("a subscriber failed on %r", meta_of(change.object).name)
