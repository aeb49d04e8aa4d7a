"""Following the logs of all pods of a job as one, with the user's own credentials."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

from lockstep.api.core import Pod
from lockstep.api.names import ATTEMPT_LABEL
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.rights import Ask
from lockstep.console.sessions import Session
from lockstep.console.topics import Topic
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import WORDS, BadQuery, require_names
from lockstep.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from lockstep.kube.kept_logs import KeptLog, kept_logs, of_one_job
from lockstep.kube.lines import LineSplitter

KEPT: Final = 2_000
"""Lines that are kept for a browser that comes back, and sent at first."""
UNSENT: Final = 4_000
"""Lines after which no more are read until the browser has taken them."""
LONGEST: Final = 8_192
"""Bytes of a line that are shown."""
MOST_PODS: Final = 64
"""Pods that are read at once: those that are there by rank, then the latest that are gone."""
AGAIN: Final = 1.0
READ: Final = Ask("get", "", "pods", "", "log")

Line = tuple[str, str, str]
"""Time (RFC 3339, may be empty), pod and text."""


class Reader:
    """Reads the log of one container, of a pod that is there or gone, and hands its lines on."""

    def __init__(self, topic: Logs, pod: Pod | KeptLog, tail: int) -> None:
        self._topic, self._tail = topic, tail
        self.state, self.message = "opening", ""
        self._begun = False
        if isinstance(pod, KeptLog):
            self._pod, self.uid, self._node, attempt = pod.pod, pod.uid, pod.node, pod.attempt
            self._container = next(iter(pod.containers), "")
        else:
            self._pod, self.uid, self._node = pod.metadata.name, pod.metadata.uid, ""
            attempt = pod.metadata.labels.get(ATTEMPT_LABEL, "")
            self._container = pod.spec.containers[0].name if pod.spec.containers else ""
        self.label = f"{self._pod} #{attempt}" if attempt not in ("", "0") else self._pod
        self.task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
                if not self._to_start():
                    self._become("ended")
                    return
                self._become("waiting")
            except NotFound:
                self._become("ended" if self._begun else "gone")
                return
            except (Forbidden, Unauthorized) as error:
                self._become("refused", error.message)
                return
            except ApiError as error:
                # The container has not started, or the server is away.
                self._become("waiting", error.message)
            await asyncio.sleep(AGAIN)

    def _to_start(self) -> bool:
        """Tell whether the pod has not started: servers give it an empty log, which ends."""
        pod = self._topic.world.pods.get(self._topic.namespace, self._pod)
        here = pod is not None and pod.metadata.uid == self.uid
        return here and pod is not None and pod.status.phase == "Pending"

    async def _read(self) -> None:
        self._topic.drop(self)
        chunks = self._topic.session.client.logs(
            self._topic.namespace,
            self._pod,
            container=self._container,
            follow=not self._node,
            tail=self._tail,
            timestamps=True,
            node=self._node,
            uid=self.uid if self._node else "",
        )
        split = LineSplitter()
        async with aclosing(chunks):
            async for chunk in chunks:
                self._begun = True
                self._become("following")
                self._topic.add(self, split.feed(chunk))
                await self._topic.room()
        self._topic.add(self, split.feed(b"\n"))

    def _become(self, state: str, message: str = "") -> None:
        if (state, message) != (self.state, self.message):
            self.state, self.message = state, message
            self._topic.changed()


class Logs(Topic):
    """``logs/NAMESPACE/JOB?q=WORDS&pod=POD``: the latest lines of all pods, and each that comes.

    Pods that are gone, of earlier attempts or of a deleted job, are among them while a node keeps
    their logs. With ``q`` only lines that hold the words, in any case of letters; with ``pod`` one
    pod alone, which may belong to no job.
    """

    kinds = frozenset({"Pod"})

    def __init__(
        self,
        world: ClusterCache,
        session: Session,
        namespace: str,
        job: str,
        given: Mapping[str, str],
    ) -> None:
        super().__init__(world, session)
        self.namespace, self._job = namespace, job
        self._only = given.get("pod", "")
        # A pod of no job has none in its place.
        require_names(namespace=namespace, **({"pod": self._only} if self._only else {"job": job}))
        self._words = given.get("q", "").strip().lower()
        if len(self._words) > WORDS:
            raise BadQuery(f"q: {len(self._words)} characters; use at most {WORDS}")
        self._kept: deque[tuple[Reader, Line]] = deque(maxlen=KEPT)
        self._new: list[Line] = []
        self._drained = asyncio.Event()
        self._readers: dict[str, Reader] = {}
        self._listed: list[KeptLog] = []
        self._stage: tuple[object, ...] | None = None
        self.changed: Callable[[], None] = lambda: None

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a pod of the job has come or gone."""
        return kind == "Pod" and namespace == self.namespace and name in (self._job, self._only)

    async def picture(self) -> Picture:
        """Return how far reading is for each pod, and in a word for all of them.

        The right to read logs is looked at each time: the API server does not end a log that is
        being followed when the right goes.
        """
        if not await self.session.rights.may(READ._replace(namespace=self.namespace)):
            self.end()
            self._readers, self._new = {}, []
            self._kept.clear()
            message = f"you may not read logs in {self.namespace}: get pods/log is missing"
            return Picture({"state": "refused", "pods": [], "message": message})
        pods = self._pods()
        gone = await self._gone({pod.metadata.uid for pod in pods})
        found: list[tuple[str, Pod | KeptLog]] = [(pod.metadata.uid, pod) for pod in pods]
        found += [(one.uid, one) for one in gone]
        share = KEPT if self._words else KEPT // max(1, min(len(found), MOST_PODS))
        for uid, one in found[:MOST_PODS]:
            known = self._readers.get(uid)
            # A pod may have gone before a line of it was read: its node has them.
            if known is None or (known.state == "gone" and isinstance(one, KeptLog)):
                self._readers[uid] = Reader(self, one, share)
        return Picture(self._facts(left=len(found) - MOST_PODS))

    def _facts(self, *, left: int) -> dict[str, Any]:
        readers = [one for one in self._readers.values() if one.state != "gone"]
        states = {one.state for one in readers}
        first = ("following", "opening", "waiting", "refused", "ended")
        state = next((word for word in first if word in states), "none")
        facts: dict[str, Any] = {"state": state, "pods": sorted({one.label for one in readers})}
        if message := next((one.message for one in readers if one.message), ""):
            facts["message"] = message
        if left > 0:
            facts["left"] = left
        return facts

    async def _gone(self, present: set[str]) -> list[KeptLog]:
        """Return the logs of pods that are gone, the latest first; asked for when pods change."""
        job = self.world.jobs.get(self.namespace, self._job)
        told = (job.metadata.uid, job.status.attempt, job.status.phase) if job else ()
        stage = (frozenset(present), *told)
        if stage != self._stage and not self._only:
            with suppress(ApiError):
                found = await kept_logs(self.session.client, self.namespace, self._job)
                self._listed = of_one_job(found, job.metadata.uid if job else None)
                self._stage = stage
        return [one for one in reversed(self._listed) if one.uid not in present]

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
        lines = [line for _, line in self._kept] if first else self._new
        self._new = []
        self._drained.set()
        if not lines:
            return told
        return {**(told or {}), "lines": sorted(lines)}

    def end(self) -> None:
        """Stop reading."""
        for one in self._readers.values():
            one.task.cancel()

    def add(self, reader: Reader, lines: list[bytes]) -> None:
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
            shown = (at.decode("ascii", "replace"), reader.label, text)
            self._kept.append((reader, shown))
            self._new.append(shown)
        if lines:
            self.changed()

    def drop(self, reader: Reader) -> None:
        """Forget the lines of a reader, which begins anew."""
        if any(one is reader for one, _ in self._kept):
            self._kept = deque((one for one in self._kept if one[0] is not reader), maxlen=KEPT)
            self.forget()

    async def room(self) -> None:
        """Wait until the browser has taken enough."""
        while len(self._new) > UNSENT:
            self._drained.clear()
            await self._drained.wait()
