"""Ending pods whose place another workload gets."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from lockstep.api.core import PODS
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.events import Recorder
from lockstep.scheduler.core.defrag.migration import Rearrangement
from lockstep.scheduler.core.model.decisions import Eviction, Note
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.resources.wording import count
from lockstep.scheduler.core.runtime.gang_status import in_full
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.status_patch import write as write_gang_status
from lockstep.scheduler.status_patch import write_pod

log = logging.getLogger(__name__)

CONCURRENCY = 32
RETRY_SECONDS = 1.0
MOST_REMEMBERED = 4096
"""Uids kept before those of pods that are gone are forgotten."""


class Evictor:
    """Carries evictions out, in an order that a crash cannot turn into a loss.

    First it is written down where the workload is to stand; a leader that finds that written goes
    on from there. Then it is written on the victims' gangs which of their pods end: a pod may be
    gone before its owner has seen why. Only then the victims are told, and ended, gracefully."""

    def __init__(self, client: Client, cluster: Cluster, recorder: Recorder) -> None:
        self._client = client
        self._cluster = cluster
        self._recorder = recorder
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._ending: set[str] = set()
        """Uids of pods that have been taken on to be ended; their ends come as events."""
        self._news: asyncio.Event | None = None
        """Where a task waits for it: set when anything new is known of any object."""

    def note(self) -> None:
        """Take note that something new is known."""
        if self._news is not None:
            self._news.set()
            self._news = None

    async def rearrange(self, one: Rearrangement) -> None:
        """Write a whole plan of moves down on the gang that waits, then let the others move."""
        key, nominations = one.workload, self._cluster.nominations
        record = self._cluster.defragmentations.get(key)
        if record is not None and key in nominations:
            status = {"nominated": one.nodes, "defragmentation": in_full(record)}
            seen = self._version(key)
            while not await self._write(key, status):
                if key not in nominations:
                    return
                seen = await self._newer(key, seen)
        moves = one.evictions(self._cluster)
        await asyncio.gather(*(self.carry_out(move) for move in moves))

    async def carry_out(self, eviction: Eviction) -> None:
        """Write the place down and end the victims, trying again until it is done or moot."""
        seen = self._version(eviction.workload)
        while not await self._note_down(eviction):
            if self._moot(eviction):
                self._pass_on(eviction)
                return
            seen = await self._newer(eviction.workload, seen)
        self._pass_on(eviction)
        self._announce(eviction)
        workloads = _by_unit(eviction.victims).items()
        await asyncio.gather(*(self._end_all(*one, eviction) for one in workloads))

    def unknown(self, members: Iterable[Member]) -> list[Member]:
        """Return those that are not being ended already."""
        return [member for member in members if member.uid not in self._ending]

    async def finish(self, members: list[Member]) -> None:
        """End pods of gangs that an earlier leader told so: none of them is to stay in half."""
        self._remember(members)
        for key, some in _by_unit(members).items():
            if key is not None:
                words = "what is left of its gang ends with the rest"
                await self._end_surely(some, Eviction(key, {}, tuple(some), words))

    def _pass_on(self, eviction: Eviction) -> None:
        """Let those show their place no more whose it was."""
        nomination = self._cluster.nominations.get(eviction.workload)
        if nomination is not None:
            nomination.instead_of = ()
        self._cluster.touched.update(eviction.instead_of)

    def _moot(self, eviction: Eviction) -> bool:
        """Return whether the place is not to be freed any more."""
        nomination = self._cluster.nominations.get(eviction.workload)
        return nomination is None or nomination.nodes != eviction.nodes

    async def _note_down(self, eviction: Eviction) -> bool:
        key = eviction.workload
        if key.kind == "Gang":
            return await self._write(key, {"nominated": eviction.nodes})
        return await self._write(key, {"nominatedNodeName": eviction.nodes[key.name]})

    def _version(self, key: WorkloadKey) -> str:
        """Return the version in which a gang, or a pod on its own, is known."""
        if key.kind == "Gang":
            workload = self._cluster.workloads.get(key)
            gang = workload.gang if workload is not None else None
            return gang.metadata.resource_version or "" if gang is not None else ""
        member = self._cluster.pods.get((key.namespace, key.name))
        return str(member.version) if member is not None else ""

    async def _newer(self, key: WorkloadKey, seen: str) -> str:
        """Wait until an object is known in another version than was *seen*; return that version.

        A write that conflicts with another one may be tried again as soon as that is known; what
        failed for other reasons is tried again after a while.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS):
                while self._version(key) == seen:
                    self._news = self._news or asyncio.Event()
                    await self._news.wait()
        return self._version(key)

    async def _write(self, key: WorkloadKey, status: dict[str, Any]) -> bool:
        """Write into the status of a gang, or of a pod on its own; return whether it is there."""
        try:
            if key.kind == "Gang":
                workload = self._cluster.workloads.get(key)
                if workload is None or workload.gang is None:
                    return False
                await write_gang_status(self._client, self._cluster, workload.gang, status)
            else:
                member = self._cluster.pods.get((key.namespace, key.name))
                if member is None:
                    return False
                await write_pod(self._client, member, status, seen=True)
        except ApiError as error:
            log.warning("%s/%s is not told: %s", key.namespace, key.name, error)
            return False
        return True

    def _announce(self, eviction: Eviction) -> None:
        """Say on the gangs concerned what happens to them."""
        hit = Counter(member.workload for member in eviction.victims if member.workload is not None)
        if eviction.workload in hit:
            self.tell(Note(eviction.workload, "Moving", f"its pods end, as {eviction.message}"))
            return
        for key, number in hit.items():
            words = f"{number} of its pods end: {eviction.told(key.namespace)}"
            self.tell(Note(key, "Preempted", words, "Warning"))
        pods, whose = count(len(eviction.victims), "pod"), count(len(hit), "gang or pod")
        words = f"{pods} of {whose} end to make room"
        self.tell(Note(eviction.workload, "Preempting", words))

    def tell(self, note: Note) -> None:
        """Say something on a gang, as an Event."""
        workload = self._cluster.workloads.get(note.workload)
        if workload is not None and workload.gang is not None:
            self._recorder.event(workload.gang, note.kind, note.reason, note.message)

    async def _end_all(
        self, key: WorkloadKey | None, members: list[Member], eviction: Eviction
    ) -> None:
        """End the pods of one workload; once a gang has been told, they all go."""
        self._remember(members)
        workload = self._cluster.workloads.get(key) if key is not None else None
        seen = self._version(key) if key is not None else ""
        while workload is not None and workload.gang is not None:
            preempted = {member.name: member.uid for member in members}
            if await self._write(workload.key, {"preempted": preempted}):
                break
            if self._moot(eviction):
                self._ending.difference_update(preempted.values())
                return
            seen = await self._newer(workload.key, seen)
        await self._end_surely(members, eviction)

    def _remember(self, members: Iterable[Member]) -> None:
        if len(self._ending) > MOST_REMEMBERED:
            self._ending &= {member.uid for member in self._cluster.pods.values()}
        self._ending.update(member.uid for member in members)

    async def _end_surely(self, members: list[Member], eviction: Eviction) -> None:
        left = members
        while left:
            done = await asyncio.gather(*(self._end(member, eviction) for member in left))
            left = [member for member, ended in zip(left, done, strict=True) if not ended]
            if left:
                await asyncio.sleep(RETRY_SECONDS)

    async def _end(self, member: Member, eviction: Eviction) -> bool:
        """Tell one pod why and delete it; return whether it ends or is gone."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": eviction.reason,
            "message": eviction.told(member.namespace),
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        async with self._slots:
            try:
                await write_pod(self._client, member, {"conditions": [condition]})
                await self._client.delete(PODS, member.name, member.namespace, uid=member.uid)
            except NotFound:
                return True
            except ApiError as error:
                known = self._cluster.pods.get(member.key)
                if known is None or known.uid != member.uid:
                    return True  # another pod has its name by now: servers refuse in several words
                log.warning("evict %s/%s: %s", member.namespace, member.name, error)
                return False
        return True


def _by_unit(members: Iterable[Member]) -> dict[WorkloadKey | None, list[Member]]:
    found: defaultdict[WorkloadKey | None, list[Member]] = defaultdict(list)
    for member in members:
        found[member.workload].append(member)
    return dict(found)
