"""Telling the server how a pod is, again and again until the server knows."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from typing import Any, Protocol

import msgspec

from lockstep.api.backoff import Backoff, Pauses
from lockstep.kube.errors import ApiError, Conflict, Invalid, NotFound
from lockstep.nodes.process.facts import PodFacts
from lockstep.nodes.process.home import PodHome
from lockstep.nodes.process.spec import POD_RUNS, Pod, PodStatus
from lockstep.nodes.process.status import OWNED, pod_status
from lockstep.nodes.process.surroundings import Surroundings
from lockstep.runtime.status import patch_status

log = logging.getLogger(__name__)

RETRIES = Backoff(initial=0.2, cap=10.0, jitter=0.2)
LAST_WORD = 1.0
"""Seconds that a node which stops waits for a pod's last status to be written."""


class Subject(Protocol):
    """A pod as the reporter sees it."""

    pod: Pod
    home: PodHome
    gone: bool

    @property
    def facts(self) -> PodFacts:
        """Return what is known of the pod."""

    def object_gone(self) -> None:
        """Note that the server has no such pod any more."""

    def changed(self) -> None:
        """Look again at what is to be done."""

    def say(self, kind: str, reason: str, message: str) -> None:
        """Record an event about the pod."""


class Reporter:
    """Keeps the server's status of one pod current, and removes the pod at its end."""

    def __init__(self, node: Surroundings, subject: Subject) -> None:
        self._node, self._subject = node, subject
        self.removed = False
        """Whether the pod is gone from the server, and nothing of it runs."""
        self._written: PodStatus | None = None
        self._version = 0
        """The resource version that came of the last write."""
        self._due = asyncio.Event()
        self._idle = asyncio.Event()
        self._crashing: set[str] = set()

    def look(self) -> None:
        """Look whether there is something to tell."""
        self._idle.clear()
        self._due.set()

    async def told(self) -> None:
        """Wait until the server knows all, for a moment at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), LAST_WORD)

    async def run(self) -> None:
        """Write each new status to the server until the pod is gone."""
        pauses = Pauses(RETRIES)
        while not self.removed:
            await self._due.wait()
            self._due.clear()
            try:
                await self._tell()
                pauses.worked()
                if not self._due.is_set():
                    self._idle.set()
            except NotFound:
                self._subject.object_gone()
            except (ApiError, OSError) as error:
                meta = self._subject.pod.metadata
                log.warning("status of %s/%s: %s", meta.namespace, meta.name, error)
                await asyncio.sleep(pauses.failed())
                self._due.set()

    async def _tell(self) -> None:
        subject = self._subject
        facts = subject.facts
        over = facts.deleted and facts.released
        if subject.gone:
            self._finish(over)
            return
        status = pod_status(self._view(), facts, self._node.host_ip, time.time())
        self._note_crashes(status)
        digest = hashlib.sha256(msgspec.json.encode(status)).hexdigest()
        if digest != subject.home.record.reported or self._overtaken():
            client, meta = self._node.client, subject.pod.metadata
            try:
                pod = await patch_status(client, POD_RUNS, meta, status)
            except (Conflict, Invalid) as error:
                if not await self._replaced():
                    raise
                raise NotFound(404, "NotFound", str(error)) from error
            self._written, self._version = pod.status, _version(pod)
            subject.home.record.reported = digest
            subject.home.save()
        if over:
            await self._remove()

    def _overtaken(self) -> bool:
        """Tell whether the server shows something else since the last status was written.

        A request that was given up may arrive after the one that was sent in its stead.
        """
        pod = self._subject.pod
        if self._written is None or _version(pod) <= self._version:
            return False
        return _own(pod.status) != _own(self._written)

    async def _replaced(self) -> bool:
        """Tell whether the pod's name belongs to another pod by now."""
        meta = self._subject.pod.metadata
        found = await self._node.client.get(POD_RUNS, meta.name, meta.namespace)
        return found.metadata.uid != meta.uid

    async def _remove(self) -> None:
        meta = self._subject.pod.metadata
        try:
            await self._node.client.delete(
                POD_RUNS, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid
            )
        except Conflict:
            log.debug("%s/%s is another pod by now", meta.namespace, meta.name)
        self._finish(True)

    def _finish(self, over: bool) -> None:
        if over:
            self.removed = True
            self._subject.changed()

    def _view(self) -> Pod:
        """Return the pod with its conditions as last written: the server's echo may be late."""
        pod = self._subject.pod
        if self._written is None:
            return pod
        own = [one for one in self._written.conditions if one.type in OWNED]
        others = [one for one in pod.status.conditions if one.type not in OWNED]
        status = msgspec.structs.replace(pod.status, conditions=own + others)
        return msgspec.structs.replace(pod, status=status)

    def _note_crashes(self, status: dict[str, Any]) -> None:
        """Make an event for each container that begins to wait after a crash."""
        now = set()
        both = ("initContainerStatuses", "containerStatuses")
        for one in [one for key in both for one in status.get(key) or ()]:
            waiting = one["state"].get("waiting", {})
            if waiting.get("reason") == "CrashLoopBackOff":
                now.add(one["name"])
                if one["name"] not in self._crashing:
                    self._subject.say("Warning", "BackOff", waiting["message"])
        self._crashing = now


def _version(pod: Pod) -> int:
    version = pod.metadata.resource_version
    return int(version) if version.isdigit() else 0


def _own(status: PodStatus) -> PodStatus:
    """Return a status without the conditions that are others' to write."""
    own = [one for one in status.conditions if one.type in OWNED]
    return msgspec.structs.replace(status, conditions=own)
