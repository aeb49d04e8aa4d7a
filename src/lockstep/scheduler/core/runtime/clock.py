"""The clock by which the decider is played on: one for simulations, estimates and what-ifs.

Time jumps to what is due next: a job that ends or comes, a moment that the decider has asked for.
Then the decider decides until it has nothing to add, and all that it decides is done at once and
does not fail. What a job is and what becomes of its pods is not the clock's business but that of
the stage on which it is played.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

from msgspec import structs

from lockstep.api import timestamp
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.defrag.migration import Rearrangement
from lockstep.scheduler.core.model.decisions import Eviction, Placement, Rollback, Verdict
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.runtime.event_queue import EventQueue
from lockstep.scheduler.core.state.cluster import Cluster

ROUNDS = 10_000
"""Decisions at one moment after which it is an error that there is more to decide."""
NAMED = 8
"""Jobs that an error names; of the others it tells how many there are."""


class NotConverged(RuntimeError):
    """The decisions at one moment do not come to an end."""

    def __init__(self, moment: float, rounds: int, jobs: Sequence[str]) -> None:
        named = ", ".join(jobs[:NAMED]) or "none"
        more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
        super().__init__(
            f"after {rounds} rounds of decisions at {moment:g} s there is still something to "
            f"decide; the last round was about: {named}{more}"
        )
        self.moment = moment
        """Seconds after the beginning of what was played."""
        self.jobs = tuple(jobs)
        """The jobs about which the last round decided something."""


class Stage(Protocol):
    """What happens to jobs when something was decided about them."""

    def stand(self, placement: Placement) -> None:
        """Let members run where they were placed; their bindings are confirmed already."""

    def roll_back(self, rollback: Rollback) -> None:
        """Take members away that could not be completed."""

    def make_way(self, eviction: Eviction) -> None:
        """Take the victims of a preemption away."""

    def rearrange(self, rearrangement: Rearrangement) -> None:
        """Take those away that move; their new places are kept."""

    def give_up(self, key: WorkloadKey, verdict: Verdict) -> None:
        """Take note of a gang that has waited for as long as it may."""

    def stumble(self, key: WorkloadKey, error: Exception) -> None:
        """Take note of a workload over which the decision itself failed; it is set aside."""


class SimulatedClock:
    """Time, what is due in it, and the decisions that follow."""

    def __init__(
        self,
        decider: Decider,
        stage: Stage,
        *,
        origin: float,
        rounds: int = ROUNDS,
        period: float = 0.0,
    ) -> None:
        """*origin* is the Unix time of its second 0, *rounds* how many decisions a moment takes.

        With a *period* it is decided at its multiples alone; what is due happens when it is due.
        """
        self.now = 0.0
        """Seconds since the origin."""
        self.agenda = EventQueue()
        self.decisions = 0
        self.undecided = False
        """Whether something happened that was not decided about yet."""
        self._decider = decider
        self._stage = stage
        self._origin = origin
        self._rounds = rounds
        self._period = period
        self._alarm: float | None = 0.0
        """When the decider is asked again though nothing else happens: once at first."""

    @property
    def unix(self) -> float:
        """Return the Unix time that is played."""
        return self._origin + self.now

    @property
    def next(self) -> float | None:
        """Return the next moment at which anything happens; None: nothing ever does."""
        due, alarm = self.agenda.next, self._alarm
        if due is None or alarm is None:
            return alarm if due is None else due
        return min(due, alarm)

    def play(self, moment: float, *, grain: float = 0.0) -> None:
        """Let all happen that is due by some moment, and decide, where it is time to.

        What is due within *grain* seconds after it is taken as due together with it.

        Raises:
            NotConverged: when the decisions do not come to an end.
        """
        self.now = moment
        while (entry := self.agenda.take(moment + grain)) is not None:
            self.now = max(self.now, entry.at)
            entry.act(*entry.args)
            self.undecided = True
        turn = self._turn(self.now)
        if turn <= self.now or self._alarm == self.now:
            self.settle()
        elif self.undecided:
            self._alarm = turn

    def _turn(self, moment: float) -> float:
        """Return the first moment from some moment on at which it is decided."""
        if not self._period:
            return moment
        return max(moment, -(-moment // self._period) * self._period)

    def settle(self) -> None:
        """Decide and carry it out until nothing is left to decide now.

        Raises:
            NotConverged: when that does not come to an end.
        """
        for _ in range(self._rounds):
            found = self._decider.decide(self.unix, limit=sys.maxsize)
            self.decisions += 1
            if not (self._carry_out(found) or found.more or self._decider.cluster.touched):
                break
        else:
            raise NotConverged(self.now, self._rounds, self._concerned(found))
        self.undecided = False
        at = found.wake_at
        # The same moment once more would tell it nothing new.
        self._alarm = None if at is None or at <= self.unix else self._turn(at - self._origin)

    def _carry_out(self, found: CycleResult) -> bool:
        """Do what a round decided; return whether there may be more to decide because of it."""
        for key, error in found.errors.items():
            self._stage.stumble(key, error)
        for key, verdict in found.given_up.items():
            self._stage.give_up(key, verdict)
        for placement in found.placements:
            # Only what is done may be preempted. That it is done is news, as it is in production.
            self._decider.cluster.workloads[placement.workload].confirm()
            self._stage.stand(placement)
        for rollback in found.rollbacks:
            self._stage.roll_back(rollback)
        for eviction in found.evictions:
            self._stage.make_way(eviction)
        for rearrangement in found.rearrangements:
            self._stage.rearrange(rearrangement)
        return bool(found.placements or found.rollbacks or found.evictions or found.rearrangements)

    def _concerned(self, found: CycleResult) -> list[str]:
        """Return the names of the workloads about which a round decided something."""
        keys = {placement.workload for placement in found.placements}
        keys |= {rollback.workload for rollback in found.rollbacks}
        keys |= {eviction.workload for eviction in found.evictions}
        keys |= {rearrangement.workload for rearrangement in found.rearrangements}
        return sorted(key.name for key in keys | found.touched | self._decider.cluster.touched)


def wait_anew(cluster: Cluster, workload: Workload, now: float) -> None:
    """Let a gang that has lost its whole place show since when it waits, as its status would."""
    if workload.gang is not None and not workload.bound:
        status = structs.replace(
            workload.gang.status, placed_at=None, waiting_since=timestamp.show(now)
        )
        cluster.set_gang(structs.replace(workload.gang, status=status))
