"""What is to be written about workloads: why they wait, how far gangs are. Nothing is sent here.

A batch says what to change and which events to tell; ``status_writer`` sends it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from lockstep.api.core import Pod
from lockstep.api.gang import Gang
from lockstep.api.start import split_start
from lockstep.api.wire import Json
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.max_wait import MAX_WAIT_EXCEEDED, given_up
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.explain.diagnosis import FITS, explain
from lockstep.scheduler.core.model.decisions import Estimate, Verdict, internal_error
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement.preconditions import passed_over
from lockstep.scheduler.core.resources.wording import count
from lockstep.scheduler.core.runtime.gang_status import (
    SeenEstimate,
    alike,
    difference,
    gang_status,
    pod_message,
    says_the_same,
    stumbled_status,
)

log = logging.getLogger(__name__)

BATCH = 256
"""Workloads with news in one batch."""
SWEEP = 16
"""Waiting workloads in one batch whose numbers may have drifted while nothing happened to them."""
PLANNING_SECONDS = 0.05
"""Longest time for which explaining may keep bindings and watches waiting; the rest follows."""
POD_WRITES = 128
"""Pod conditions in one batch; the others wait for the next."""
REWORD_AFTER = 30.0
"""Seconds for which a pod's condition keeps its words when only numbers in them changed."""

Clock = Callable[[], float]
"""Tells seconds that only grow."""


class Bindings(Protocol):
    """What is known of bindings under way."""

    @property
    def busy(self) -> Collection[WorkloadKey]:
        """Return the workloads of which pods are being bound."""

    def just_began(self, workload: WorkloadKey) -> bool:
        """Return whether a workload is being bound and that began a moment ago."""


class GangChange(NamedTuple):
    """A change of a gang's status, which stood as the gang shows it."""

    key: WorkloadKey
    gang: Gang
    change: Json


class PodCondition(NamedTuple):
    """What a waiting pod is to say; *outdated*: what it shows of a nomination is not so."""

    member: Member
    verdict: Verdict
    outdated: bool


class Event(NamedTuple):
    """What is told of an object once."""

    about: Any
    kind: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(slots=True)
class Batch:
    """What is written next."""

    gangs: list[GangChange] = field(default_factory=list)
    pods: list[PodCondition] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a pod's condition was made to say, and when; its informer may not show it yet."""

    uid: str
    verdict: Verdict
    at: float


class StatusPlan:
    """Keeps which workloads have news, and says what is to be written of them."""

    def __init__(
        self,
        decider: Decider,
        shown: Callable[[str, str], Pod | None],
        bindings: Bindings,
        clock: Clock,
    ) -> None:
        """*shown* returns a pod by namespace and name as the API server last showed it."""
        self._decider = decider
        self._cluster = decider.cluster
        self._pod = shown
        self._bindings = bindings
        self._clock = clock
        self._news: set[WorkloadKey] = set()
        self._drifted: set[WorkloadKey] = set()
        self._foreseen: dict[WorkloadKey, SeenEstimate] = {}
        self._unread: list[tuple[Gang, Verdict]] = []
        self._said: dict[tuple[str, str], _Said] = {}

    def take(self, result: CycleResult) -> None:
        """Take note of a round: whom it concerned, and that others' numbers may have drifted."""
        self._news.update(result.touched, result.failed, (p.workload for p in result.placements))
        if result.touched:
            self._drifted.update(self._decider.pending_queue.all())

    def foresee(self, estimates: dict[WorkloadKey, Estimate], seen: float) -> None:
        """Take note of when what waits will start, as found at the Unix time *seen*."""
        before, self._foreseen = self._foreseen, {}
        for key, estimate in estimates.items():
            workload = self._cluster.workloads.get(key)
            if workload is None:
                continue
            one = SeenEstimate(estimate, seen, workload.uid)
            if workload.is_gang:
                news = workload.gang is not None and not says_the_same(workload.gang.status, one)
            else:
                # Reading what thousands of pods show would keep bindings waiting. What is much
                # the same as before does not count as found, else it could creep away unseen.
                old = before.get(key)
                news = old is None or old.uid != workload.uid or not alike(old.estimate, one)
                one = one if old is None or news else old
            self._foreseen[key] = one
            if news:
                self._drifted.add(key)

    def _told(self, workload: Workload) -> SeenEstimate | None:
        """Return what was found of a workload, not of one that had its name before."""
        one = self._foreseen.get(workload.key)
        return one if one is not None and one.uid == workload.uid else None

    @property
    def behind(self) -> bool:
        """Return whether there is anything that may have to be written."""
        return bool(self._news or self._drifted or self._unread)

    def _choose(self) -> list[WorkloadKey]:
        """Return the workloads of the next batch: those with news first, the next in line first."""
        line = self._decider.pending_queue
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

    def next(self, now: str) -> Batch:
        """Return what to write at the time *now*, as timestamps are written."""
        return self._plan(self._choose(), now)

    def _plan(self, keys: Sequence[WorkloadKey], now: str) -> Batch:
        started = self._clock()
        writes = Batch()
        places = self._decider.pending_queue.places()
        known: dict[tuple[object, ...], Verdict] = {}
        for number, key in enumerate(keys):
            if self._clock() - started > PLANNING_SECONDS:
                self._news.update(keys[number:])
                break
            workload = self._cluster.workloads.get(key)
            if workload is None:
                continue
            if self._bindings.just_began(key) or key in self._decider.tentative_placements:
                # How far it is would be written again and again; it is written when it is done.
                self._news.add(key)
                continue
            try:
                self._plan_unit(writes, workload, places.get(key), known, now)
            except Exception as error:
                log.exception("saying how %s %s/%s is failed", *key)
                self._plan_stumbled(
                    writes, workload.gang, internal_error("saying how it is", error)
                )
        for gang, verdict in self._unread:
            self._plan_stumbled(writes, gang, verdict)
        self._unread.clear()
        return writes

    def _plan_unit(
        self,
        writes: Batch,
        workload: Workload,
        place: int | None,
        known: dict[tuple[object, ...], Verdict],
        now: str,
    ) -> None:
        verdict = self._decider.broken.get(workload.key) or given_up(workload)
        if verdict is None and place is not None:
            verdict = self._verdict(workload, known)
        if workload.gang is not None:
            self._plan_gang(writes, workload, verdict, place, now)
        if workload.key not in self._bindings.busy and not _about_to_fail(workload, verdict):
            self._plan_pods(writes, workload, verdict)

    def _plan_stumbled(self, writes: Batch, gang: Gang | None, verdict: Verdict) -> None:
        """Say of a gang that the scheduler itself stumbles over it; no more is sure."""
        if gang is None:
            return
        change = difference(gang.status, stumbled_status(verdict))
        if change:
            key = WorkloadKey("Gang", gang.metadata.namespace, gang.metadata.name)
            writes.gangs.append(GangChange(key, gang, change))
            writes.events.append(Event(gang, "Warning", verdict.reason, verdict.message))

    def cannot_read(self, obj: Any, error: Exception) -> Event | None:
        """Take note of an object that could not be taken in; return what is told at once of it.

        A gang says it in its status instead.
        """
        verdict = internal_error(f"reading this {obj.kind}", error)
        if isinstance(obj, Gang):
            self._unread.append((obj, verdict))
            return None
        return Event(obj, "Warning", verdict.reason, verdict.message)

    def _verdict(
        self, workload: Workload, known: dict[tuple[object, ...], Verdict]
    ) -> Verdict | None:
        if workload.key in self._bindings.busy:
            return None
        problem = self._decider.problem(workload)
        held = self._cluster.reservations.of(workload.key)
        # Words name what is in the workload's own namespace, and say what is kept for it.
        signature = (
            (problem.signature, workload.queue, workload.key.namespace, held and held.at)
            if problem is not None
            else None
        )
        found = known.get(signature) if signature is not None else None
        if found is None:
            found = explain(self._cluster, workload)
            if signature is not None:
                known[signature] = found
        return None if found.reason == FITS else found

    def _plan_gang(
        self,
        writes: Batch,
        workload: Workload,
        verdict: Verdict | None,
        place: int | None,
        now: str,
    ) -> None:
        gang = workload.gang
        if gang is None:
            return
        foreseen = self._told(workload)
        status = gang_status(self._cluster, workload, verdict, place, now, foreseen=foreseen)
        change = difference(gang.status, status)
        if not change:
            return
        writes.gangs.append(GangChange(workload.key, gang, change))
        if "reason" in change and verdict is not None:
            writes.events.append(Event(gang, "Warning", "FailedScheduling", verdict.message))
        elif change.get("placedAt"):
            where = ", ".join(f"{tier} {name}" for tier, name in (status["domain"] or {}).items())
            words = f"{count(status['bound'], 'pod')} placed" + (f" under {where}" if where else "")
            writes.events.append(Event(gang, "Normal", "Placed", words))

    def _plan_pods(self, writes: Batch, workload: Workload, verdict: Verdict | None) -> None:
        for member in workload.pending:
            why = verdict if workload.failed else passed_over(workload, member) or verdict
            if why is None:
                continue
            shown = self._shown(member)
            if not workload.is_gang:
                foreseen = self._told(workload)
                why = replace(why, message=pod_message(why.message, shown, foreseen))
            outdated = not workload.is_gang and self._decider.preemptor.outdated(workload)
            if not outdated and not self._needs_words(member, why, shown):
                continue
            if len(writes.pods) == POD_WRITES:
                self._news.add(workload.key)
                return
            writes.pods.append(PodCondition(member, why, outdated))
            pod = self._pod(*member.key)
            reason, _ = split_start(why.message)
            if pod is not None and not workload.is_gang and reason != split_start(shown)[0]:
                writes.events.append(Event(pod, "Warning", "FailedScheduling", reason))

    def _shown(self, member: Member) -> str:
        """Return what a pod's condition says of why it waits, as far as is known."""
        said = self._lately(member)
        if said is not None:
            return said.verdict.message
        pod = self._pod(*member.key)
        conditions = pod.status.conditions if pod is not None else []
        return next((c.message for c in conditions if c.type == "PodScheduled"), "")

    def _lately(self, member: Member) -> _Said | None:
        """Return what a pod was made to say not long ago."""
        said = self._said.get(member.key)
        now = self._clock()
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
        return self._pod(*member.key) is not None and shown != verdict.message

    def wrote(self, one: PodCondition) -> None:
        """Take note of what a pod says from now on; its informer may not show it yet."""
        self._said[one.member.key] = _Said(one.member.uid, one.verdict, self._clock())
        if len(self._said) > 2 * len(self._cluster.pods) + 1024:
            self._said = {k: v for k, v in self._said.items() if k in self._cluster.pods}

    def again(self, key: WorkloadKey) -> None:
        """Say anew how a workload is: what was to be written of it was not."""
        self._news.add(key)


def _about_to_fail(workload: Workload, verdict: Verdict | None) -> bool:
    """Return whether a gang gives up and does not say so yet.

    Its pods fail after it has: of a gang whose pods have ended a leader that knows no more than
    the API server would say that it ran.
    """
    gives_up = verdict is not None and verdict.reason == MAX_WAIT_EXCEEDED
    return gives_up and not workload.failed
