"""Jobs and nodes through time, driven by the scheduler's core.

The core is the one that runs in production, and the clock the one that its estimates are made with:
the engine tells them of objects and lets happen to jobs what was decided about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from lockstep.api.meta import Condition
from lockstep.api.names import GPU
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.max_wait import deadline
from lockstep.scheduler.core.defrag.migration import Rearrangement
from lockstep.scheduler.core.model.decisions import Eviction, Placement, Rollback, Verdict
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.preemption.lost_work import lost_work
from lockstep.scheduler.core.resources.device_allocation import Spot, granted
from lockstep.scheduler.core.runtime.clock import SimulatedClock, wait_anew
from lockstep.sim.engine.costs import SimulatedCosts
from lockstep.sim.engine.job_run import JobRun
from lockstep.sim.engine.meter import Meter
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.pools import SimulatedPools
from lockstep.sim.engine.wait_reasons import show_why, why
from lockstep.sim.input.faults import Dice
from lockstep.sim.input.initial_cluster import InitialCluster, stood
from lockstep.sim.input.jobs import Job
from lockstep.sim.result.communication import paid
from lockstep.sim.result.record import Rearranged, Result

NOT_READY = Condition(type="Ready", status="False", reason="Simulated")
MILLI = 1000
"""Of a GPU, the workload of accounts."""


class Simulation:
    """One run over a world and the jobs that come to it, in the order of their arrival."""

    def __init__(
        self,
        world: InitialCluster,
        works: Iterable[Job],
        options: Options,
        *,
        behind: WorkloadKey | None = None,
    ) -> None:
        """*behind* is a job that comes when it has been decided about those before it."""
        self.cluster = world.cluster()
        self._world = world
        self._standing = world.by_gang()
        self._works = iter(works)
        self._behind = behind
        self._options = options
        self._dice = Dice(options.faults, options.seed)
        self._runs: dict[WorkloadKey, JobRun] = {}
        self._decider = Decider(
            self.cluster, costs=SimulatedCosts(self._runs, world.epoch), policy=options.defrag
        )
        self._clock = SimulatedClock(
            self._decider,
            self,
            origin=world.epoch,
            rounds=options.rounds,
            period=options.period,
        )
        self._result = Result(seed=options.seed)
        self._meter = Meter(self.cluster.table, self._result)
        self._down: set[str] = set()
        self._pools = SimulatedPools(world, self.cluster, self._clock, self._dice, self._lose_on)
        self._more = False
        """Whether jobs are still to arrive."""

    def run(
        self,
        progress: Callable[[float, int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Result:
        """Run to the end; *progress* is told the time, the jobs that ended and that are there.

        It ends when nothing is left that could happen, at the time that the options name, or when
        *stop* says so after some event.
        """
        self._next_arrival()
        for name in self._world.nodes:
            self._plan_failure(name)
        for now in self._moments():
            self._meter.advance(now)
            told = self._clock.unix if self._clock.undecided else None
            show_why(self._decider, self._world.epoch + now, told)
            self._clock.play(now)
            self._pools.look(waiting=bool(len(self._decider.pending_queue)))
            self._meter.sample()
            if progress is not None:
                ended = len(self._result.lives) - len(self._runs)
                progress(now, ended, len(self._result.lives))
            if stop is not None and stop():
                break
        return self._finish()

    def has_started(self, key: WorkloadKey) -> bool:
        """Return whether a job that has not ended has had what it needs."""
        run = self._runs.get(key)
        return run is not None and run.life.started is not None

    def attempt(self, work: Job) -> tuple[bool, bool]:
        """Return whether a job would start if it came at this moment; it is taken away again.

        The second is whether all others stand as they did before, and with the same room kept.
        """
        before = self._others()
        self._arrive(work)
        self._clock.settle()
        started = self.has_started(work.key)
        if work.key in self._runs:
            self._depart(self._runs[work.key])
        return started, before == self._others()

    def _others(self) -> tuple[object, ...]:
        """Return what differs once a job has moved others, or taken room kept for one of them."""
        moved = len(self._result.evictions), len(self._result.rearrangements)
        kept = self.cluster.reservations.room
        quota = [(held.workload, held.at) for held in self.cluster.reservations.quota.values()]
        return *moved, kept and (kept.workload, kept.at, kept.place), quota

    def _moments(self) -> Iterator[float]:
        """Yield the times at which something happens; several events may share one."""
        until = self._options.until
        while not self._idle():
            due = inf if self._clock.next is None else self._clock.next
            if due > until:
                self._meter.advance(until)
                self._clock.now = until
            if due > until or due == inf:
                return
            yield due

    def _idle(self) -> bool:
        """Return whether nothing more can come: nodes alone would go on failing for ever.

        Jobs that run for ever go on until the time that the options name, where they name one.
        """
        if self._more or self._down or self._clock.undecided or self._pools.open:
            return False
        if self.cluster.reservations.room is not None:
            return False
        if self.cluster.reservations.quota:
            return False
        bounded = self._options.until != inf
        if any(run.standing and (run.finite or bounded) for run in self._runs.values()):
            return False
        workloads = (self.cluster.workloads.get(key) for key in self._runs)
        return all(workload is None or deadline(workload) is None for workload in workloads)

    @property
    def _now(self) -> float:
        """Return the seconds since the start."""
        return self._clock.now

    def _plan(self, delay: float, act: Callable[..., None], *args: Any) -> None:
        self._clock.agenda.plan(self._now + delay, act, *args)

    # Jobs.

    def _next_arrival(self) -> None:
        work = next(self._works, None)
        self._more = work is not None
        if work is not None:
            self._plan(max(0.0, work.arrival - self._now), self._arrive, work)

    def _arrive(self, work: Job) -> None:
        if work.key == self._behind:
            self._clock.settle()
        self._meter.ask(work.gpus)
        life = self._result.lives.begin(work)
        run = self._runs[work.key] = JobRun(work, life, self._options.faults, self._now)
        self.cluster.set_gang(work.gang)
        for pod in run.fresh():
            self.cluster.set_pod(pod)
        self._resume(run)
        self._next_arrival()

    def _resume(self, run: JobRun) -> None:
        """Put the pods that stood on nodes at the start where they stood."""
        standing = self._standing.get(run.work.key, ())
        since = self._clock.unix
        for there in standing:
            self.cluster.remove_pod(there.metadata.namespace, there.metadata.name)
        for name, there in run.match(standing):
            spot = Spot(there.spec.node_name, granted(there.metadata.annotations))
            run.stand(name, spot, self._now)
            self.cluster.set_pod(run.bound(name))
            self._use(run, name, spot.node)
            # Else its end would not be known, and any workload would pass those that wait.
            begun = self._clock.unix - stood(there, run.work.elapsed)
            self.cluster.pods[run.work.key.namespace, name].since = begun
            since = min(since, begun)
        if standing:
            workload = self.cluster.workloads[run.work.key]
            run.resume(lost_work(workload, since, self._clock.unix))
            run.started(self._now)
            self._follow(run)

    def _use(self, run: JobRun, name: str, node: str, *, no_more: bool = False) -> None:
        """Count the GPUs that a pod holds on a node, or held there."""
        held = self._held(run, name, node) * (-1 if no_more else 1)
        run.held += held
        self._meter.use(run.work.queue, held)

    def _end(self, run: JobRun) -> None:
        run.advance(self._now)
        run.life.ended = self._now
        self._depart(run)
        self._result.lives.end(run.life)

    def _depart(self, run: JobRun) -> None:
        """Forget a job with all that it has."""
        self._clock.agenda.drop(run.work.key)
        self._meter.ask(-run.work.gpus)
        key = run.work.key
        for name in list(run.standing):
            self._leave(run, name)
        for pod in run.work.pods:
            self.cluster.remove_pod(key.namespace, pod.metadata.name)
        self.cluster.remove_gang(key.namespace, key.name)
        del self._runs[key]

    def _break(self, run: JobRun) -> None:
        run.life.restarts += 1
        self._restart(run)

    def _restart(self, run: JobRun) -> None:
        """Take all of a job's pods away and let it begin again from its last checkpoint."""
        run.fall_back(self._now)
        self._clock.agenda.drop(run.work.key)
        names = list(run.standing)
        for name in names:
            self._leave(run, name)
        self._renew(run, names)

    def _lose(self, run: JobRun, names: list[str]) -> bool:
        """Take some of a job's pods away; return whether it goes on without them."""
        run.advance(self._now)
        if not run.survives(names):
            self._restart(run)
            return False
        for name in names:
            self._leave(run, name)
        self._renew(run, names)
        self._follow(run)
        return True

    def _renew(self, run: JobRun, names: list[str]) -> None:
        for name in names:
            self.cluster.remove_pod(run.work.key.namespace, name)
        for pod in run.fresh(names):
            self.cluster.set_pod(pod)
        wait_anew(self.cluster, self.cluster.workloads[run.work.key], self._clock.unix)

    def _leave(self, run: JobRun, name: str) -> None:
        stay = run.leave(name, self._now)
        self._use(run, name, stay.node, no_more=True)
        self._result.stays.add(run.life.number, stay)

    def _held(self, run: JobRun, name: str, node: str) -> float:
        """Return the GPUs that a pod holds on a node, shares as fractions."""
        shape = self.cluster.pods[run.work.key.namespace, name].shape
        return self.cluster.ledger.charged(shape, self.cluster.card(node)).get(GPU, 0) / MILLI

    def _follow(self, run: JobRun) -> None:
        """Plan what comes next for a job whose members changed."""
        agenda, key = self._clock.agenda, run.work.key
        if not run.speed:
            agenda.drop(key)
            return
        ends, breaks = run.remaining(), self._dice.job_breaks(run.gpus)
        soonest, act = min((ends, self._end), (breaks, self._break), key=itemgetter(0))
        agenda.replace(key, self._now + soonest, act, run)

    # What was decided.

    def stand(self, placement: Placement) -> None:
        """Let members of a job run where they were placed."""
        run = self._runs[placement.workload]
        run.advance(self._now)
        for assignment in placement.assignments:
            name, spot = assignment.member.name, assignment.spot
            run.stand(name, spot, self._now)
            self._use(run, name, spot.node)
        run.started(self._now)
        if run.life.started == self._now and run.life.paid is None:
            run.life.paid = paid(self.cluster, run.work, self._result.shapes)
        self._follow(run)

    def roll_back(self, rollback: Rollback) -> None:
        """Take members away that could not be completed; they wait again."""
        names = [member.name for member in rollback.members]
        self._lose(self._runs[rollback.workload], names)

    def give_up(self, key: WorkloadKey, verdict: Verdict) -> None:
        """Let a job fail that has waited for as long as it may."""
        run = self._runs[key]
        run.life.gave_up, run.life.waiting = self._now, verdict.message
        self._depart(run)

    def stumble(self, key: WorkloadKey, error: Exception) -> None:
        """Break off: a simulation that goes on over a defect of the core would hide it."""
        raise error

    def rearrange(self, one: Rearrangement) -> None:
        """Let jobs move for another; their pods are there again at once."""
        name = self._runs[one.workload].work.name
        movers = [self._runs[key] for key in one.moves]
        self._result.rearrangements.append(
            Rearranged(self._now, name, tuple(run.work.name for run in movers), one.price)
        )
        moves = one.evictions(self.cluster)
        for run, move in zip(movers, moves, strict=True):
            run.life.moves += 1
            self._lose(run, [member.name for member in move.victims])

    def make_way(self, eviction: Eviction) -> None:
        """End the victims of an eviction; their jobs wait again, or go on without them."""
        hit: dict[WorkloadKey, list[str]] = {}
        for member in eviction.victims:
            if member.workload in self._runs:
                hit.setdefault(member.workload, []).append(member.name)
            else:
                self.cluster.remove_pod(member.namespace, member.name)
        by = self._runs[eviction.workload].work.name
        for key, names in hit.items():
            run = self._runs[key]
            run.life.preemptions += 1
            self._result.evictions.append((by, run.work.name))
            self._lose(run, names)

    # Nodes.

    def _plan_failure(self, name: str) -> None:
        node = self._world.nodes[name]
        self._plan(self._dice.node_fails(node), self._node_down, name)

    def _node_down(self, name: str) -> None:
        node = self._world.nodes[name]
        self._result.node_faults += 1
        self._down.add(name)
        kept = [c for c in node.status.conditions if c.type != "Ready"]
        status = replace(node.status, conditions=[*kept, NOT_READY])
        self.cluster.set_node(replace(node, status=status))
        self._lose_on(name)
        self._plan(self._dice.node_returns(node), self._node_up, name)

    def _lose_on(self, name: str) -> None:
        """Take away the pods on a node, as it is gone."""
        hit: dict[WorkloadKey, list[str]] = {}
        for member in list(self.cluster.on_node(name)):
            if member.workload in self._runs:
                hit.setdefault(member.workload, []).append(member.name)
        for key, names in hit.items():
            if not self._lose(self._runs[key], names):
                self._runs[key].life.restarts += 1

    def _node_up(self, name: str) -> None:
        self._down.discard(name)
        self.cluster.set_node(self._world.nodes[name])
        self._plan_failure(name)

    # The end.

    def _finish(self) -> Result:
        result = self._result
        result.end, result.decisions = self._now, self._clock.decisions
        result.bills = self._pools.finish()
        result.node_faults += sum(bill.reclaimed for bill in result.bills.values())
        for key, run in self._runs.items():
            run.advance(self._now)
            workload = self.cluster.workloads.get(key)
            if workload is not None and workload.open:
                run.life.waiting = why(self._decider, workload)
            for stay in run.open_stays():
                result.stays.add(run.life.number, stay)
        return result
