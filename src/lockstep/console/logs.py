"""Following a container's log with the user's own credentials."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

from lockstep.console.sessions import Session
from lockstep.console.topics import Topic
from lockstep.console.views.picture import Picture
from lockstep.console.world import World
from lockstep.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from lockstep.kube.lines import LineSplitter

KEPT: Final = 2_000
"""Lines that are kept for a browser that comes back, and sent at first."""
UNSENT: Final = 2_000
"""Lines after which no more are read until the browser has taken them."""
LONGEST: Final = 8_192
"""Bytes of a line that are shown."""
AGAIN: Final = 1.0


class Log(Topic):
    """``log/NAMESPACE/POD/CONTAINER``: the latest lines, and each that comes."""

    def __init__(
        self, world: World, session: Session, namespace: str, pod: str, container: str
    ) -> None:
        super().__init__(world, session)
        self._where = (namespace, pod, container)
        self._kept: deque[str] = deque(maxlen=KEPT)
        self._new: list[str] = []
        self._state: dict[str, str] = {"state": "opening"}
        self._drained = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.changed: Callable[[], None] = lambda: None

    async def picture(self) -> Picture:
        """Return how far reading is: opening, following, waiting, ended or refused."""
        return Picture(dict(self._state))

    def forget(self) -> None:
        """Note that it is not known which lines the browser has."""
        super().forget()
        self._new = []

    async def message(self) -> dict[str, Any] | None:
        """Return the lines since the last message, all that are kept in the first one."""
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        lines = self._new if self._told else list(self._kept)
        self._new = []
        self._drained.set()
        told = await super().message()
        if not lines:
            return told
        return {**(told or {}), "lines": lines}

    def end(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
                if not self._to_start():
                    self._become("ended")
                    return
                self._become("waiting")
            except (Forbidden, NotFound, Unauthorized) as error:
                self._become("refused", error.message)
                return
            except ApiError as error:
                # The container has not started, or the server is away.
                self._become("waiting", error.message)
            await asyncio.sleep(AGAIN)

    def _to_start(self) -> bool:
        """Tell whether the pod has not started: servers give it an empty log, which ends."""
        pod = self.world.pods.get(*self._where[:2])
        return pod is not None and pod.status.phase == "Pending"

    async def _read(self) -> None:
        namespace, pod, container = self._where
        self._kept.clear()
        self.forget()
        chunks = self.session.client.logs(
            namespace, pod, container=container, follow=True, tail=KEPT
        )
        split = LineSplitter()
        async with aclosing(chunks):
            async for chunk in chunks:
                self._become("following")
                self._add(split.feed(chunk))
                await self._room()
        self._add(split.feed(b"\n"))

    def _add(self, lines: list[bytes]) -> None:
        for line in lines:
            text = line[:LONGEST].decode("utf-8", "replace")
            if len(line) > LONGEST:
                text += f" … ({len(line)} bytes)"
            self._kept.append(text)
            self._new.append(text)
        if lines:
            self.changed()

    async def _room(self) -> None:
        while len(self._new) > UNSENT:
            self._drained.clear()
            await self._drained.wait()

    def _become(self, state: str, message: str = "") -> None:
        found = {"state": state, **({"message": message} if message else {})}
        if found != self._state:
            self._state = found
            self.changed()
