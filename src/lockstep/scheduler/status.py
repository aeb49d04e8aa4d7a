"""Writing down why units wait and how far gangs are, at a pace that the API server bears."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from lockstep.api.core import PODS, Pod
from lockstep.api.gang import Gang
from lockstep.api.start import split_start
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import ApiError, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.scheduler.binder import Binder
from lockstep.scheduler.core.blocked import Verdict, passed_over
from lockstep.scheduler.core.decide import Decider
from lockstep.scheduler.core.explain import FITS, explain
from lockstep.scheduler.core.failures import stumbled
from lockstep.scheduler.core.kept_quota import promised
from lockstep.scheduler.core.outlook import Estimate
from lockstep.scheduler.core.report import (
    Foreseen,
    Json,
    alike,
    difference,
    gang_status,
    pod_message,
    says_the_same,
    stumbled_status,
    unscheduled_status,
)
from lockstep.scheduler.core.round import Round
from lockstep.scheduler.core.timeouts import MAX_WAIT_EXCEEDED, given_up
from lockstep.scheduler.core.units import Member, Unit, UnitKey
from lockstep.scheduler.gang_status import write as write_gang_status

log = logging.getLogger(__name__)

PACE = 0.2
"""Seconds between two batches: what happens in between is written once."""
BATCH = 256
"""Units with news in one batch."""
SWEEP = 16
"""Waiting units in one batch whose numbers may have drifted while nothing happened to them."""
PLANNING_SECONDS = 0.05
"""Longest time for which explaining may keep bindings and watches waiting; the rest follows."""
POD_WRITES = 128
"""Pod conditions in one batch; the others wait for the next."""
WRITERS = 8
REWORD_AFTER = 30.0
"""Seconds for which a pod's condition keeps its words when only numbers in them changed."""


@dataclass(slots=True)
class _Writes:
    """What one batch writes."""

    calls: list[Awaitable[None]] = field(default_factory=list)
    pods_left: int = POD_WRITES


@dataclass(frozen=True, slots=True)
class _Said:
    """What a pod's condition was made to say, and when; its informer may not show it yet."""

    uid: str
    verdict: Verdict
    at: float


class StatusWriter:
    """Keeps the statuses of gangs and the conditions of waiting pods as they should be."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        decider: Decider,
        pods: Informer[Pod],
        binder: Binder,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._decider = decider
        self._cluster = decider.cluster
        self._pods = pods
        self._binder = binder
        self._news: set[UnitKey] = set()
        self._drifted: set[UnitKey] = set()
        self._foreseen: dict[UnitKey, Foreseen] = {}
        self._unread: list[tuple[Gang, Verdict]] = []
        self._said: dict[tuple[str, str], _Said] = {}
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(WRITERS)

    def take(self, result: Round) -> None:
        """Take note of a round: whom it concerned, and that others' numbers may have drifted."""
        self._news.update(result.touched, result.failed, (p.unit for p in result.placements))
        if result.touched:
            self._drifted.update(self._decider.line.all())
        if self.behind:
            self._wake.set()

    def foresee(self, estimates: dict[UnitKey, Estimate], seen: float) -> None:
        """Take note of when what waits will start, as found at the Unix time *seen*."""
        before, self._foreseen = self._foreseen, {}
        for key, estimate in estimates.items():
            unit = self._cluster.units.get(key)
            if unit is None:
                continue
            one = Foreseen(estimate, seen, unit.uid)
            if unit.is_gang:
                news = unit.gang is not None and not says_the_same(unit.gang.status, one)
            else:
                # Reading what thousands of pods show would keep bindings waiting. What is much
                # the same as before does not count as found, else it could creep away unseen.
                old = before.get(key)
                news = old is None or old.uid != unit.uid or not alike(old.estimate, one)
                one = one if old is None or news else old
            self._foreseen[key] = one
            if news:
                self._drifted.add(key)
        if self._drifted:
            self._wake.set()

    def _told(self, unit: Unit) -> Foreseen | None:
        """Return what was found of a unit, not of one that had its name before."""
        one = self._foreseen.get(unit.key)
        return one if one is not None and one.uid == unit.uid else None

    @property
    def behind(self) -> bool:
        """Return whether there is anything that may have to be written."""
        return bool(self._news or self._drifted or self._unread)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(PACE)
            await self._binder.lull()
            self._wake.clear()
            writes = self._plan(self._choose())
            await asyncio.gather(*writes.calls)
            if self.behind:
                self._wake.set()

    def _choose(self) -> list[UnitKey]:
        """Return the units of the next batch: those with news first, the next in line first."""
        line = self._decider.line
        waiting = line.sort(self._news)
        others = [key for key in self._news if key not in line]
        chosen = [*others, *waiting][:BATCH]
        self._news.difference_update(chosen)
        self._drifted.difference_update(chosen)
        swept = line.sort(self._drifted)[:SWEEP]
        self._drifted.difference_update(swept)
        if not swept:
            self._drifted.clear()
        return chosen + swept

    def _plan(self, keys: Sequence[UnitKey]) -> _Writes:
        loop = asyncio.get_running_loop()
        started = loop.time()
        writes = _Writes()
        places = self._decider.line.places()
        known: dict[tuple[object, ...], Verdict] = {}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for number, key in enumerate(keys):
            if loop.time() - started > PLANNING_SECONDS:
                self._news.update(keys[number:])
                break
            unit = self._cluster.units.get(key)
            if unit is None:
                continue
            if self._binder.just_began(key) or key in self._decider.starts:
                # How far it is would be written again and again; it is written when it is done.
                self._news.add(key)
                continue
            try:
                self._plan_unit(writes, unit, places.get(key), known, now)
            except Exception as error:
                log.exception("saying how %s %s/%s is failed", *key)
                self._plan_stumbled(writes, unit.gang, stumbled("saying how it is", error))
        for gang, verdict in self._unread:
            self._plan_stumbled(writes, gang, verdict)
        self._unread.clear()
        return writes

    def _plan_unit(
        self,
        writes: _Writes,
        unit: Unit,
        place: int | None,
        known: dict[tuple[object, ...], Verdict],
        now: str,
    ) -> None:
        verdict = self._decider.broken.get(unit.key) or given_up(unit)
        if verdict is None and place is not None:
            verdict = self._verdict(unit, known)
        if unit.gang is not None:
            self._plan_gang(writes, unit, verdict, place, now)
        if unit.key not in self._binder.busy and not _about_to_fail(unit, verdict):
            self._plan_pods(writes, unit, verdict, now)

    def _plan_stumbled(self, writes: _Writes, gang: Gang | None, verdict: Verdict) -> None:
        """Say of a gang that the scheduler itself stumbles over it; no more is sure."""
        if gang is None:
            return
        change = difference(gang.status, stumbled_status(verdict))
        if change:
            key = UnitKey("Gang", gang.metadata.namespace, gang.metadata.name)
            writes.calls.append(self._write_gang(key, gang, change))
            self._recorder.event(gang, "Warning", verdict.reason, verdict.message)

    def cannot_read(self, obj: Any, error: Exception) -> None:
        """Report an object from the API server that the scheduler could not take in."""
        verdict = stumbled(f"reading this {obj.kind}", error)
        if isinstance(obj, Gang):
            self._unread.append((obj, verdict))
            self._wake.set()
        else:
            self._recorder.event(obj, "Warning", verdict.reason, verdict.message)

    def _verdict(self, unit: Unit, known: dict[tuple[object, ...], Verdict]) -> Verdict | None:
        if unit.key in self._binder.busy:
            return None
        problem = self._decider.problem(unit)
        held = promised(self._cluster, unit.key)
        # Words name what is in the unit's own namespace, and say what is kept for it.
        signature = (
            (problem.signature, unit.queue, unit.key.namespace, held and held.at)
            if problem is not None
            else None
        )
        found = known.get(signature) if signature is not None else None
        if found is None:
            found = explain(self._cluster, unit)
            if signature is not None:
                known[signature] = found
        return None if found.reason == FITS else found

    def _plan_gang(
        self, writes: _Writes, unit: Unit, verdict: Verdict | None, place: int | None, now: str
    ) -> None:
        gang = unit.gang
        if gang is None:
            return
        foreseen = self._told(unit)
        status = gang_status(self._cluster, unit, verdict, place, now, foreseen=foreseen)
        change = difference(gang.status, status)
        if not change:
            return
        writes.calls.append(self._write_gang(unit.key, gang, change))
        if "reason" in change and verdict is not None:
            self._recorder.event(gang, "Warning", "FailedScheduling", verdict.message)
        elif change.get("placedAt"):
            where = ", ".join(f"{tier} {name}" for tier, name in (status["domain"] or {}).items())
            words = f"{status['bound']} pods placed" + (f" under {where}" if where else "")
            self._recorder.event(gang, "Normal", "Placed", words)

    def _plan_pods(self, writes: _Writes, unit: Unit, verdict: Verdict | None, now: str) -> None:
        for member in unit.pending:
            why = verdict if unit.failed else passed_over(unit, member) or verdict
            if why is None:
                continue
            shown = self._shown(member)
            if not unit.is_gang:
                foreseen = self._told(unit)
                why = replace(why, message=pod_message(why.message, shown, foreseen))
            outdated = not unit.is_gang and self._decider.preemptor.outdated(unit)
            if not outdated and not self._needs_words(member, why, shown):
                continue
            if not writes.pods_left:
                self._news.add(unit.key)
                return
            writes.pods_left -= 1
            writes.calls.append(self._write_pod(member, why, now, outdated))
            pod = self._pods.get(*member.key)
            reason, _ = split_start(why.message)
            if pod is not None and not unit.is_gang and reason != split_start(shown)[0]:
                self._recorder.event(pod, "Warning", "FailedScheduling", reason)

    def _shown(self, member: Member) -> str:
        """Return what a pod's condition says of why it waits, as far as is known."""
        said = self._lately(member)
        if said is not None:
            return said.verdict.message
        pod = self._pods.get(*member.key)
        conditions = pod.status.conditions if pod is not None else []
        return next((c.message for c in conditions if c.type == "PodScheduled"), "")

    def _lately(self, member: Member) -> _Said | None:
        """Return what a pod was made to say not long ago."""
        said = self._said.get(member.key)
        now = asyncio.get_running_loop().time()
        if said is None or said.uid != member.uid or now - said.at >= REWORD_AFTER:
            return None
        return said

    def _needs_words(self, member: Member, verdict: Verdict, shown: str) -> bool:
        """Return whether a pod does not say why it waits, or has not for long, or when it starts.

        When it starts may change as often as it is looked ahead; numbers in why may at any time.
        """
        if verdict.reason == MAX_WAIT_EXCEEDED:
            return True  # it waits no more as soon as that is written
        said = self._lately(member)
        if said is not None and said.verdict.reason == verdict.reason:
            return split_start(shown)[1] != split_start(verdict.message)[1]
        return self._pods.get(*member.key) is not None and shown != verdict.message

    async def _write_gang(self, key: UnitKey, seen: Gang, change: Json) -> None:
        async with self._slots:
            try:
                await write_gang_status(self._client, self._cluster, seen, change)
                if change.get("phase") == "Failed":
                    self._again(key)  # its pods are next
            except NotFound:
                return
            except Conflict:
                self._again(key)
            except ApiError as error:
                log.warning("status of gang %s/%s: %s", key.namespace, key.name, error)
                self._again(key)

    async def _write_pod(self, member: Member, verdict: Verdict, now: str, outdated: bool) -> None:
        status = unscheduled_status(member, verdict, now, outdated=outdated)
        # The uid makes the server refuse it for a new pod of that name; the version, once the
        # pod has a node: what is late would say of a pod that runs that it waits, or has failed.
        meta = {"uid": member.uid}
        if member.version:
            meta["resourceVersion"] = str(member.version)
        body: Json = {"metadata": meta, "status": status}
        async with self._slots:
            if member.node:
                return
            try:
                await self._client.patch(
                    PODS,
                    member.name,
                    body,
                    member.namespace,
                    how=Patch.STRATEGIC,
                    subresource="status",
                )
            except NotFound:
                return
            except Conflict:
                if member.unit is not None:
                    self._again(member.unit)
                return
            except ApiError as error:
                log.warning("condition of pod %s/%s: %s", member.namespace, member.name, error)
                if member.unit is not None:
                    self._again(member.unit)
                return
        said = _Said(member.uid, verdict, asyncio.get_running_loop().time())
        self._said[member.key] = said
        if len(self._said) > 2 * len(self._cluster.pods) + 1024:
            self._said = {k: v for k, v in self._said.items() if k in self._cluster.pods}

    def _again(self, key: UnitKey) -> None:
        self._news.add(key)
        self._wake.set()


def _about_to_fail(unit: Unit, verdict: Verdict | None) -> bool:
    """Return whether a gang gives up and does not say so yet.

    Its pods fail after it has: of a gang whose pods have ended a leader that knows no more than
    the API server would say that it ran.
    """
    gives_up = verdict is not None and verdict.reason == MAX_WAIT_EXCEEDED
    return gives_up and not unit.failed
