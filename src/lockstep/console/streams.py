"""One stream of server-sent events a browser, with the topics that it shows."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec

from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.sessions import Session
from lockstep.console.topic_names import topic
from lockstep.console.topics import Topic
from lockstep.console.views.query import BadQuery
from lockstep.kube.errors import ApiError, Unauthorized

log = logging.getLogger(__name__)

Write = Callable[[bytes], Awaitable[None]]

TOGETHER: Final = 0.1
"""Seconds for which changes are gathered before they are told."""
SHARE: Final = 4
"""How many times as long as telling took it rests, so that a stream takes a fifth of a core."""
LOOK_AGAIN: Final = 4.0
"""Seconds after which rights are looked at anew, and a sign of life is sent."""
KEPT: Final = 60.0
"""Seconds for which a broken stream can be resumed."""
MOST_TOPICS: Final = 64
MOST_STREAMS: Final = 16


class Stream:
    """What one browser follows; it outlives broken connections for ``KEPT`` seconds."""

    def __init__(self, world: ClusterCache, session: Session) -> None:
        self.id = secrets.token_urlsafe(9)
        self._world, self._session = world, session
        self._topics: dict[str, Topic] = {}
        self._changed: set[str] = set()
        self._awake = asyncio.Event()
        self._count = 0
        self._connection: asyncio.Task[Any] | None = None
        self._forgetting: asyncio.TimerHandle | None = None
        self._ended = False
        self._looked = 0.0
        self._unlisten = world.listen(self._on_change)
        while len(session.streams) >= MOST_STREAMS:
            next(iter(session.streams.values())).end()
        session.streams[self.id] = self

    def follow(self, names: Iterable[str]) -> None:
        """Follow exactly these topics.

        Raises:
            BadQuery: for a topic that there is not; then nothing changes.
        """
        wanted = list(dict.fromkeys(names))
        if len(wanted) > MOST_TOPICS:
            raise BadQuery(f"topics: {len(wanted)}; follow at most {MOST_TOPICS}")
        made = {n: topic(self._world, self._session, n) for n in wanted if n not in self._topics}
        for name in set(self._topics) - set(wanted):
            self._topics.pop(name).end()
        for name, one in made.items():
            self._topics[name] = one
            if hasattr(one, "changed"):
                one.changed = lambda name=name: self._mark(name)
            self._mark(name)

    async def run(self, write: Write, last_event: str) -> None:
        """Tell what changes until the connection breaks; *last_event* is what arrived last."""
        if self._connection is not None:
            self._connection.cancel()
        self._connection = asyncio.current_task()
        if self._forgetting is not None:
            self._forgetting.cancel()
        if last_event != f"{self.id}:{self._count}":
            for name, one in self._topics.items():
                one.forget()
                self._mark(name)
        try:
            await write(f"retry: 1000\nevent: hello\ndata: {self.id}\n\n".encode())
            while not self._ended:
                await self._round(write)
            await write(b"event: signed-out\ndata:\n\n")
        finally:
            if self._connection is asyncio.current_task():
                self._connection = None
                loop = asyncio.get_running_loop()
                self._forgetting = loop.call_later(KEPT, self.end)

    async def _round(self, write: Write) -> None:
        try:
            await asyncio.wait_for(self._awake.wait(), LOOK_AGAIN)
            await asyncio.sleep(TOGETHER)
        except TimeoutError:
            await write(b": alive\n\n")
        if self._session.over:
            self._session.end()
        if self._ended:
            return
        self._awake.clear()
        clock = asyncio.get_running_loop().time
        began = clock()
        if began - self._looked >= LOOK_AGAIN:
            # A topic of which nothing changes may show what its user may see no more.
            self._looked = began
            self._changed.update(self._topics)
        names, self._changed = self._changed, set()
        for name in names:
            one = self._topics.get(name)
            if one is not None:
                await self._tell(name, one, write)
        await asyncio.sleep(min(2.0, SHARE * (clock() - began)))

    async def _tell(self, name: str, one: Topic, write: Write) -> None:
        try:
            message = await one.message()
        except Unauthorized:
            self._session.end()
            return
        except ApiError as error:
            # The page keeps what it shows; it is asked for again with the next look.
            log.debug("%s: %s", name, error)
            return
        if message is not None:
            self._count += 1
            body = msgspec.json.encode({"topic": name, **message})
            await write(b"id: %s:%d\ndata: %s\n\n" % (self.id.encode(), self._count, body))

    def _on_change(self, kind: str, namespace: str, name: str) -> None:
        for topic_name, one in self._topics.items():
            if topic_name not in self._changed and one.concerns(kind, namespace, name):
                self._mark(topic_name)

    def _mark(self, name: str) -> None:
        self._changed.add(name)
        self._awake.set()

    def end(self) -> None:
        """End it for good."""
        self._ended = True
        self._unlisten()
        self._session.streams.pop(self.id, None)
        for one in self._topics.values():
            one.end()
        self._topics.clear()
        self._awake.set()
