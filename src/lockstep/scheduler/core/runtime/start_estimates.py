"""When what waits will start: the decider's own future, if all goes on as stated.

The decider itself is played on, by the clock of simulations: what states its run time ends when
that has passed, nothing new comes, nothing fails; what is preempted meanwhile does again what it
had not saved, and takes a restart longer. So an estimate is what the scheduler would do,
passing and preemption included, and not a second opinion. What states no run time never ends;
a workload that waits for that has no estimate and learns what it waits for; that is tried too.

It uses up the cluster that it is given. A caller that goes on with that plays on a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from lockstep.api import timestamp
from lockstep.api.names import MAX_WAIT_ANNOTATION
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.defrag.candidates import RESTART_SECONDS
from lockstep.scheduler.core.defrag.migration import Rearrangement
from lockstep.scheduler.core.model.decisions import (
    Estimate,
    Eviction,
    Placement,
    Rollback,
    Verdict,
    internal_error,
)
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.placement.preconditions import unmet_precondition
from lockstep.scheduler.core.preemption.lost_work import lost_work
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.runtime.clock import ROUNDS, SimulatedClock, wait_anew
from lockstep.scheduler.core.util.annotation_values import span

MOMENT = 0.01
"""Seconds within which ends are one event: placements are numbered by millionths of seconds."""
LONG = 500
"""Waiting workloads beyond which the future is played in coarser steps, the further the coarser."""
GRAIN = 0.005
"""Part of the time ahead within which ends are one event then."""
NAMED = 2
"""Workloads named that are waited for; the rest is summed up."""
OWN_PODS = "what it waits for is something about itself"
NEVER = "it would not start even if all that runs had ended"


class StartEstimates:
    """The future of one moment, played moment by moment."""

    def __init__(
        self,
        decider: Decider,
        now: float,
        *,
        rounds: int = ROUNDS,
        restart: float = RESTART_SECONDS,
    ) -> None:
        """*restart*: seconds to the first step of a gang that lost its place and has one again."""
        self.found: dict[WorkloadKey, Estimate] = {}
        """What is known so far of the workloads that wait for their place."""
        self._decider = decider
        self._cluster = decider.cluster
        self._clock = SimulatedClock(decider, self, origin=now, rounds=rounds)
        self._began = now
        self._open: set[WorkloadKey] = set()
        self._runs: dict[WorkloadKey, list[Member]] = {}
        self._overdue: set[WorkloadKey] = set()
        self._restart = restart
        self._left: dict[WorkloadKey, float] = {}
        """Of gangs that lost their place, the seconds of work that are left."""
        self._beyond = False
        """Whether time is over, and all that never ends has been taken away."""
        self._in_the_way: dict[str, list[WorkloadKey]] = {}
        """By node, what never ended there."""
        self._cluster.budgets.follow(self._cluster.pods)
        self._take_in_limits()
        self._take_in_waiting()
        self._take_in_standing()
        self._long = len(self._open) > LONG

    @property
    def waiting(self) -> int:
        """Return of how many workloads nothing is known yet."""
        return len(self._open)

    def advance(self) -> bool:
        """Play the next moment at which anything happens; return whether there is more to tell.

        Raises:
            Unsettled: when the decisions at that moment do not come to an end.
        """
        if not self._open:
            return False
        moment = self._clock.next
        if self._beyond or moment is None:
            return self._go_beyond()
        grain = MOMENT + (GRAIN * moment if self._long else 0.0)
        self._clock.play(moment, grain=grain)
        return True

    def break_off(self, why: str) -> None:
        """Tell what still waits that it does not start before what was played, and *why* no more.

        The time is rounded down, more where it is far, so that looks that come alike far say alike.
        """
        reached = self._clock.now
        grain = next((one for one in (3600, 60) if reached >= one), 1)
        at = min(self._clock.unix // grain * grain, timestamp.LAST)
        told = Estimate(None, why, None if self._beyond else at)
        self.found |= dict.fromkeys(self._open, told)
        self._open.clear()

    # The present.

    def _take_in_limits(self) -> None:
        """Let those give up that their jobs end when they have waited for too long."""
        for workload in list(self._cluster.workloads.values()):
            gang = workload.gang
            stated = gang.metadata.annotations.get(MAX_WAIT_ANNOTATION) if gang else None
            if gang is not None and stated is not None and span(stated) is not None:
                self._cluster.set_gang(replace(gang, spec=replace(gang.spec, max_wait=stated)))

    def _take_in_waiting(self) -> None:
        for key in self._decider.pending_queue.all():
            workload = self._cluster.workloads[key]
            if workload.bound:
                continue  # what waits are members that it can do without, or that it lost
            if (
                key in self._decider.broken
                or unmet_precondition(self._cluster, workload) is not None
            ):
                self.found[key] = Estimate(None, OWN_PODS)
            else:
                self._open.add(key)

    def _take_in_standing(self) -> None:
        """Let bindings under way succeed, and what is on its way out be gone."""
        cluster = self._cluster
        self._decider.requeue_wait.cease()
        condemned = {m.key for m in cluster.nominations.condemned(cluster.pods)}
        for member in list(cluster.pods.values()):
            if not member.holds:
                continue
            if member.terminating:
                cluster.remove_pod(*member.key)
                continue
            if member.assumed and (workload := cluster.workloads.get(member.owner)) is not None:
                workload.confirm()
            if member.key in condemned:
                self._send_back(member)
            elif member.ours or member.runtime is not None:
                self._runs.setdefault(member.owner, []).append(member)
        for key in self._runs:
            end = self._end_of(key)
            if end is not None and end <= self._began:
                self._overdue.add(key)
            else:
                self._plan_end(key, end)

    def _end_of(self, key: WorkloadKey) -> float | None:
        """Return when a workload that stands ends as stated; None where nothing is stated."""
        workload = self._cluster.workloads.get(key)
        source = workload if workload is not None and workload.is_gang else self._runs[key][0]
        since, runtime = source.since, source.runtime
        if since is None or runtime is None:
            return None
        return since + (self._restart + self._left[key] if key in self._left else runtime)

    def _fall_back(self, key: WorkloadKey) -> None:
        """Note how much work is left of a gang that loses its place now."""
        workload = self._cluster.workloads.get(key)
        if workload is None or workload.since is None or workload.runtime is None:
            return
        begun = workload.since + (self._restart if key in self._left else 0.0)
        done = max(0.0, self._clock.unix - begun)
        lost = min(done, lost_work(workload, begun, self._clock.unix))
        self._left[key] = max(0.0, self._left.get(key, workload.runtime) - done + lost)

    # What happens.

    def _plan_end(self, key: WorkloadKey, end: float | None) -> None:
        """Let this end count for a workload, and no other that was planned before."""
        if end is None:
            self._clock.agenda.drop(key)
        else:
            self._clock.agenda.replace(key, end - self._began, self._end, key)

    def _end(self, key: WorkloadKey) -> None:
        for member in self._runs.pop(key, ()):
            self._cluster.remove_pod(*member.key)
        self._clock.agenda.drop(key)
        if key.kind == "Gang":
            workload = self._cluster.workloads.get(key)
            for member in list(workload.members.values()) if workload is not None else ():
                self._cluster.remove_pod(*member.key)
            self._cluster.remove_gang(key.namespace, key.name)

    def stand(self, placement: Placement) -> None:
        """Note which workload starts, and when it ends."""
        key = placement.workload
        self._runs.setdefault(key, []).extend(one.member for one in placement.assignments)
        if key in self._open:
            nodes = {one.spot.node for one in placement.assignments}
            at = Estimate(min(self._clock.unix, timestamp.LAST))
            self._tell(key, Estimate(None, self._whom(key, nodes)) if self._beyond else at)
        self._plan_end(key, self._end_of(key))

    def roll_back(self, rollback: Rollback) -> None:
        """Let members wait again that could not be completed."""
        self._lose(rollback.members)

    def make_way(self, eviction: Eviction) -> None:
        """Let the victims wait again."""
        self._lose(eviction.victims)

    def rearrange(self, rearrangement: Rearrangement) -> None:
        """Let what moves wait for its new place."""
        for move in rearrangement.evictions(self._cluster):
            self._lose(move.victims)

    def stumble(self, key: WorkloadKey, error: Exception) -> None:
        """Tell a workload over which the decision fails that no more is known of it."""
        self._tell(key, Estimate(None, internal_error("deciding about it", error).message))

    def give_up(self, key: WorkloadKey, verdict: Verdict) -> None:
        """Tell a workload that it will have waited too long before it could start."""
        self._tell(key, Estimate(None, verdict.message))
        self._end(key)

    def _tell(self, key: WorkloadKey, estimate: Estimate) -> None:
        if key in self._open:
            self._open.discard(key)
            self.found[key] = estimate

    def _lose(self, members: Iterable[Member]) -> None:
        gone = list(members)
        for key in dict.fromkeys(member.owner for member in gone):
            there = {member.key for member in self._runs.get(key, ())}
            if there <= {member.key for member in gone}:
                self._fall_back(key)
        for member in gone:
            key = member.owner
            left = [m for m in self._runs.get(key, ()) if m.key != member.key]
            self._runs[key] = left
            if not left:
                del self._runs[key]
                self._clock.agenda.drop(key)
            self._send_back(member)

    def _send_back(self, member: Member) -> None:
        """Let a pod of a gang wait again, as its successor will; one of its own is gone."""
        workload = self._cluster.workloads.get(member.owner)
        if workload is None or workload.gang is None:
            self._cluster.remove_pod(*member.key)
            return
        member.assumed, member.since = True, None
        self._cluster.forget(member.key, member.uid)
        wait_anew(self._cluster, workload, self._clock.unix)

    # What never ends.

    def _go_beyond(self) -> bool:
        """Take away what never ends and see what starts then; return whether anything did."""
        self._beyond = True
        for key, members in self._runs.items():
            for node in dict.fromkeys(member.node for member in members):
                self._in_the_way.setdefault(node, []).append(key)
        for key in list(self._runs):
            self._end(key)
        before = len(self._open)
        self._clock.settle()
        for key in list(self._runs):  # what is placed now and would end is in no workload's way
            if self._end_of(key) is not None:
                self._end(key)
        if len(self._open) < before:
            return bool(self._open)
        self.found |= dict.fromkeys(self._open, Estimate(None, NEVER))
        self._open.clear()
        return False

    def _whom(self, key: WorkloadKey, nodes: Collection[str]) -> str:
        """Return in words what never ends where a workload would go; others' names stay unsaid."""
        there = dict.fromkeys(k for node in sorted(nodes) for k in self._in_the_way.get(node, ()))
        unknown = [one for one in there if one not in self._overdue]
        blamed = unknown or list(there)
        if not blamed:
            return "what it waits for has no expected run time"
        own = [one for one in blamed if one.namespace == key.namespace]
        parts = [f"{one.kind.lower()} {one.name}" for one in own[:NAMED]]
        if len(own) > NAMED:
            parts.append(f"{len(own) - NAMED} more")
        if len(own) < len(blamed):
            parts.append(f"{len(blamed) - len(own)} in other namespaces")
        plural = len(blamed) > 1 or not own
        if unknown:
            return f"{wording.listing(parts)} {'have' if plural else 'has'} no expected run time"
        return f"{wording.listing(parts)} {'run' if plural else 'runs'} longer than expected"
