"""Following the logs of all pods of a job as one, with the user's own credentials."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

from lockstep.api.core import Pod
from lockstep.console.sessions import Session
from lockstep.console.topics import Topic
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import WORDS, BadQuery, require_names
from lockstep.console.world import World
from lockstep.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from lockstep.kube.lines import LineSplitter

KEPT: Final = 2_000
"""Lines that are kept for a browser that comes back, and sent at first."""
UNSENT: Final = 4_000
"""Lines after which no more are read until the browser has taken them."""
LONGEST: Final = 8_192
"""Bytes of a line that are shown."""
MOST_PODS: Final = 64
"""Pods that are followed at once; the first by rank."""
AGAIN: Final = 1.0

Line = tuple[str, str, str]
"""Time (RFC 3339, may be empty), pod and text."""


class Reader:
    """Follows the log of one container and hands its lines on."""

    def __init__(self, topic: Logs, pod: Pod, tail: int) -> None:
        self.pod, self._topic, self._tail = pod.metadata.name, topic, tail
        self.state, self.message = "opening", ""
        self._container = pod.spec.containers[0].name if pod.spec.containers else ""
        self.task = asyncio.create_task(self._follow())

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
        pod = self._topic.world.pods.get(self._topic.namespace, self.pod)
        return pod is not None and pod.status.phase == "Pending"

    async def _read(self) -> None:
        self._topic.drop(self.pod)
        chunks = self._topic.session.client.logs(
            self._topic.namespace,
            self.pod,
            container=self._container,
            follow=True,
            tail=self._tail,
            timestamps=True,
        )
        split = LineSplitter()
        async with aclosing(chunks):
            async for chunk in chunks:
                self._become("following")
                self._topic.add(self.pod, split.feed(chunk))
                await self._topic.room()
        self._topic.add(self.pod, split.feed(b"\n"))

    def _become(self, state: str, message: str = "") -> None:
        if (state, message) != (self.state, self.message):
            self.state, self.message = state, message
            self._topic.changed()


class Logs(Topic):
    """``logs/NAMESPACE/JOB?q=WORDS&pod=POD``: the latest lines of all pods, and each that comes.

    With ``q`` only lines that hold the words, in any case of letters; with ``pod`` one pod alone,
    which may belong to no job.
    """

    kinds = frozenset({"Pod"})

    def __init__(
        self, world: World, session: Session, namespace: str, job: str, given: Mapping[str, str]
    ) -> None:
        super().__init__(world, session)
        self.namespace, self._job = namespace, job
        self._only = given.get("pod", "")
        # A pod of no job has none in its place.
        require_names(namespace=namespace, **({"pod": self._only} if self._only else {"job": job}))
        self._words = given.get("q", "").strip().lower()
        if len(self._words) > WORDS:
            raise BadQuery(f"q: {len(self._words)} characters; use at most {WORDS}")
        self._kept: deque[Line] = deque(maxlen=KEPT)
        self._new: list[Line] = []
        self._drained = asyncio.Event()
        self._readers: dict[str, Reader] = {}
        self.changed: Callable[[], None] = lambda: None

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a pod of the job has come or gone."""
        return kind == "Pod" and namespace == self.namespace and name in (self._job, self._only)

    async def picture(self) -> Picture:
        """Return how far reading is for each pod, and in a word for all of them."""
        pods = self._pods()
        for pod in pods[:MOST_PODS]:
            uid = pod.metadata.uid
            if uid not in self._readers:
                share = KEPT if len(pods) == 1 or self._words else max(50, KEPT // len(pods))
                self._readers[uid] = Reader(self, pod, share)
        readers = list(self._readers.values())
        states = {one.state for one in readers}
        first = ("following", "opening", "waiting", "refused", "ended")
        state = next((word for word in first if word in states), "none")
        facts: dict[str, Any] = {"state": state, "pods": sorted({one.pod for one in readers})}
        if message := next((one.message for one in readers if one.message), ""):
            facts["message"] = message
        if len(pods) > MOST_PODS:
            facts["left"] = len(pods) - MOST_PODS
        return Picture(facts)

    def _pods(self) -> list[Pod]:
        found = self.world.pods_of(self.namespace, self._job)
        if self._only:
            one = self.world.pods.get(self.namespace, self._only)
            found = [one] if one is not None else []
        return sorted(found, key=lambda pod: pod.metadata.name)

    def forget(self) -> None:
        """Note that it is not known which lines the browser has."""
        super().forget()
        self._new = []

    async def message(self) -> dict[str, Any] | None:
        """Return the lines since the last message, all that are kept in the first one."""
        first = not self._told
        told = await super().message()
        lines = list(self._kept) if first else self._new
        self._new = []
        self._drained.set()
        if not lines:
            return told
        return {**(told or {}), "lines": sorted(lines)}

    def end(self) -> None:
        """Stop reading."""
        for one in self._readers.values():
            one.task.cancel()

    def add(self, pod: str, lines: list[bytes]) -> None:
        """Take lines of a pod, each with its time in front."""
        for line in lines:
            at, _, rest = line[: LONGEST + 64].partition(b" ")
            if not at[:4].isdigit():
                at, rest = b"", line[:LONGEST]
            text = rest[:LONGEST].decode("utf-8", "replace")
            if self._words and self._words not in text.lower():
                continue
            if len(line) > LONGEST + 64:
                text += f" … ({len(line)} bytes)"
            shown = (at.decode("ascii", "replace"), pod, text)
            self._kept.append(shown)
            self._new.append(shown)
        if lines:
            self.changed()

    def drop(self, pod: str) -> None:
        """Forget the lines of a pod, which is read anew."""
        if any(line[1] == pod for line in self._kept):
            self._kept = deque((one for one in self._kept if one[1] != pod), maxlen=KEPT)
            self.forget()

    async def room(self) -> None:
        """Wait until the browser has taken enough."""
        while len(self._new) > UNSENT:
            self._drained.clear()
            await self._drained.wait()
