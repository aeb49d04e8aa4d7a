"""The decision round: what waits, in order, and what becomes of it now."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.cycle.defrag_step import DefragStep
from lockstep.scheduler.core.cycle.max_wait import MaxWaits
from lockstep.scheduler.core.cycle.pending_queue import PendingQueue, classes
from lockstep.scheduler.core.cycle.placer import Placer
from lockstep.scheduler.core.cycle.queue_order import QueueOrder
from lockstep.scheduler.core.cycle.requeue_wait import RequeueWait
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.cycle.tentative_placements import TentativePlacements
from lockstep.scheduler.core.cycle.timers import (
    ARRIVAL,
    ROLLBACK,
    Timers,
    arrival_until,
    roll_back_in_time,
)
from lockstep.scheduler.core.defrag.candidates import MoveCosts
from lockstep.scheduler.core.defrag.defragmenter import STATED, Defragmenter
from lockstep.scheduler.core.defrag.policy_trigger import PolicyTrigger
from lockstep.scheduler.core.model.decisions import Eviction, Placement, Verdict, internal_error
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement.problem import ProblemCache
from lockstep.scheduler.core.preemption.preemptor import Preemptor
from lockstep.scheduler.core.reservations.book import ReservationBook
from lockstep.scheduler.core.reservations.bypass import Heeded
from lockstep.scheduler.core.state.cluster import Cluster

PLANS_PER_ROUND = 4
"""Workloads for which one round looks for victims; the others follow in the next."""


class Decider:
    """Makes the decisions over one cluster, round by round.

    A workload that found no place is looked at again only when it changed or when something was
    freed. One that does not fit lets others pass it: places are given out in order, not held back.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        costs: MoveCosts = STATED,
        policy: DefragmentationPolicy | None = None,
    ) -> None:
        """*costs* and *policy* are those of moving gangs; the policy for queues that state none."""
        self.cluster = cluster
        self._problems = ProblemCache(cluster)
        self.problem = self._problems.of
        """Tells of a workload what it asks for; None where it is blocked by itself."""
        self.pending_queue = PendingQueue(cluster, classes(cluster, self.problem))
        self.broken: dict[WorkloadKey, Verdict] = {}
        """Workloads that cannot be decided about until they change, and what happened."""
        self.preemptor = Preemptor(cluster)
        self.book = ReservationBook(cluster, self.problem)
        self._timers = Timers()
        self.tentative_placements = TentativePlacements(cluster, self._timers)
        self.requeue_wait = RequeueWait(cluster, self._timers)
        self.max_waits = MaxWaits()
        self.defragmenter = Defragmenter(cluster, self.preemptor, costs)
        self.defragmentation = DefragStep(
            self.defragmenter, self.book, PolicyTrigger(cluster, policy)
        )
        self._plans_left, self._last = 0, 0.0
        self._placer = Placer(cluster)
        self._resting: set[WorkloadKey] = set()
        """Workloads stepped over because bindings or pods of theirs are under way."""
        self._freed = -1
        self._ground: tuple[object, ...] = ()

    def decide(
        self, now: float, *, busy: Container[WorkloadKey] = (), limit: int = 512
    ) -> CycleResult:
        """Decide about what may have a place now, up to *limit* pods.

        Workloads in *busy* (their bindings are under way) are left for later. A cycle has five
        phases: observe, expire, try each in order, defragment, publish.
        """
        result = CycleResult()
        self._observe(result, busy, now)
        self._expire(result, now)
        absent_until = self.requeue_wait.until(now)
        placed = self._try_each(result, busy, now, limit, others=absent_until is None)
        if absent_until is not None:
            result.wake(absent_until)
        elif not result.more:
            self._defragment(now, busy, result)
        cut_short = result.more and placed < limit
        self._publish(result, now, cut_short=cut_short, absent_until=absent_until)
        return result

    def _expire(self, result: CycleResult, now: float) -> None:
        """Give up gangs that have waited for as long as they may."""
        for key, verdict in self.max_waits.take(self.cluster, now):
            self._give_up(key, verdict, result)

    def _try_each(
        self,
        result: CycleResult,
        busy: Container[WorkloadKey],
        now: float,
        limit: int,
        *,
        others: bool,
    ) -> int:
        """Place, preempt or reserve for each in order; return how many pods were placed."""
        placed, self._plans_left = 0, PLANS_PER_ROUND
        for key in self._candidates(others=others):
            if placed >= limit:
                result.more = True
                break
            # What stays of a gang whose pods leave may be too little to grow on.
            leaves = self.preemptor.leaves(self.cluster.workloads[key])
            if leaves or key in busy or key in self._resting or self._gathers(key, now, result):
                self._resting.add(key)
                self.pending_queue.step_aside(key)
                continue
            try:
                placed += self._decide_one(key, now, result)
            except Exception as error:
                self._set_aside(key, error, result)
            if result.more:
                break
        return placed

    def _publish(
        self, result: CycleResult, now: float, *, cut_short: bool, absent_until: float | None
    ) -> None:
        """Release tentative placements that nothing takes back any more; say when to come back."""
        self.requeue_wait.expect(result.evictions, now)
        if self.tentative_placements:  # they may break reservations: others may then go for more
            self.book.refresh(now, released=False)
        moved = result.evictions or result.rearrangements or self.cluster.freed != self._freed
        settled = not (moved or cut_short)
        self.tentative_placements.hand_out(result, now, settled=settled, waits=absent_until)
        for due in (self.book.wake_at, self.max_waits.next, self.preemptor.wake_at(now)):
            if due is not None:
                result.wake(due)
        self.cluster.ledger.rest(self.pending_queue.contending(), self.cluster.capacity())

    def _gathers(self, key: WorkloadKey, now: float, result: CycleResult) -> bool:
        """Return whether more pods of a gang are on their way; then ask to be back for it."""
        until = arrival_until(self._timers, self.cluster.workloads[key], now)
        if until is not None:
            result.wake(until)
        return until is not None

    def _defragment(self, now: float, busy: Container[WorkloadKey], result: CycleResult) -> None:
        """Let others move for one gang that waits, where that was asked for or is due."""
        chance = self.defragmentation.next(
            self.pending_queue, now, lambda key: key in busy or key in self.broken, self.problem
        )
        if (moment := self.defragmentation.wake_at) is not None:
            result.wake(moment)
        if chance is None:
            return
        key = chance.look.workload.key
        try:
            with self.book.bypass.lifted(chance.look.workload, now):
                found = self.defragmentation.take(chance)
        except Exception as error:
            self._set_aside(key, error, result)
            return
        result.touched.add(key)
        if found is not None:
            result.rearrangements.append(found)
            self.pending_queue.step_aside(key)
        result.more = True  # another gang may be due

    def _candidates(self, *, others: bool) -> Iterator[WorkloadKey]:
        """Yield the workloads to try in order; each is placed, shut or set aside before the next.

        Without *others* only those that have a part of their place, or one that is kept for them.
        """
        yield from self.pending_queue.half_placed()
        nominated = {nomination.workload for nomination in self.cluster.nominations}
        yield from self.pending_queue.sort(nominated) if nominated else ()
        if others:
            yield from QueueOrder(self.pending_queue, self.cluster, self.problem)

    def _decide_one(self, key: WorkloadKey, now: float, result: CycleResult) -> int:
        """Decide about one workload; return how many of its pods were placed."""
        workload = self.cluster.workloads[key]
        stands = key in self.cluster.nominations
        with self.book.bypass.lifted(workload, now) as heeded:
            if stands:
                placement = self._stand(workload, now, result)
                if placement is None:
                    return 0
            else:
                problem = self.problem(workload)
                placement = self._placer.place(workload, problem, exempt=heeded.exempt)
            if placement is not None:
                placement = self._with_claims(placement, result)
            if placement is None and self._evict_for(workload, heeded, now, result):
                return 0
        if placement is None:
            self._reserve(workload, now)
            roll_back_in_time(self._timers, workload, now, result)
            self.pending_queue.shut(key)
            result.failed.append(key)
            self.broken.pop(key, None)
            return 0
        self._commit(placement, now)
        result.more |= self.book.placed(workload, placement, heeded, now)
        self.tentative_placements.hold(placement, now, grows=stands and key in self._resting)
        self.broken.pop(key, None)
        return len(placement.assignments)

    def _with_claims(self, placement: Placement, result: CycleResult) -> Placement | None:
        """Return a placement with the devices of its pods' claims; None where they are too few.

        What a node offers was then told too high: it is looked at anew in the next round.
        """
        found = self.cluster.device_claims.fulfil(placement)
        if found is None:
            self.cluster.freed += 1
            self.cluster.device_claims.withdraw(self.cluster.freed)
            result.touched.add(placement.workload)
            result.more = True
        return found

    def _reserve(self, workload: Workload, now: float) -> None:
        """Tell when a workload that does not fit can start, and keep what it needs until then."""
        if not self.book.may_reserve(workload, now):
            return
        problem = self.problem(workload)
        if problem is not None and any(quota.need for quota in problem.needs):
            self.book.reserve(workload, problem, now)

    def _stand(self, workload: Workload, now: float, result: CycleResult) -> Placement | None:
        """Return the place of a workload for which others leave, once they have."""
        if self.defragmenter.awaits(workload.key):
            return None
        problem = self.problem(workload)
        if problem is None:
            self.cluster.nominations.drop(workload.key)
            return None
        nomination = self.cluster.nominations.get(workload.key)
        if nomination is not None and nomination.purpose == "Moving":
            problem = replace(problem, needs=problem.wants)  # the place is there for all of it
        placement, eviction = self.preemptor.stand(workload, problem, now)
        if eviction is not None:
            self._make_way(eviction, result)
        elif placement is None and workload.key not in self.cluster.nominations:
            self.pending_queue.update(workload.key)
            result.touched.add(workload.key)
        return placement

    def _evict_for(
        self, workload: Workload, heeded: Heeded, now: float, result: CycleResult
    ) -> bool:
        """Let others leave for a workload without a place; return whether that ends its turn."""
        problem = self.problem(workload)
        if problem is None or not self.preemptor.worth_a_look(workload, problem):
            return False
        if not self._plans_left:
            result.more = True
            self.book.withhold()
            return True
        self._plans_left -= 1
        rows = self.book.bypass.open_to(heeded)
        eviction, again = self.preemptor.evict_for(workload, problem, now, rows)
        if eviction is not None:
            self._make_way(eviction, result)
            result.touched.add(workload.key)
            self.pending_queue.step_aside(workload.key)
        elif again:
            self._resting.add(workload.key)
            self.pending_queue.step_aside(workload.key)
            self.book.withhold()
            result.failed.append(workload.key)
        return eviction is not None or again

    def _make_way(self, eviction: Eviction, result: CycleResult) -> None:
        """Have those leave that have started; what was about to start waits again."""
        self.tentative_placements.take_back(eviction.taken_back)
        if eviction.victims:
            result.evictions.append(eviction)

    def _give_up(self, key: WorkloadKey, verdict: Verdict, result: CycleResult) -> None:
        """Try a gang no more that has waited for as long as it may, and keep nothing for it."""
        self.broken[key] = verdict
        self.pending_queue.step_aside(key)
        self.cluster.nominations.drop(key)
        self.book.release(key)
        result.given_up[key] = verdict
        result.touched.add(key)

    def _set_aside(self, key: WorkloadKey, error: Exception, result: CycleResult) -> None:
        """Leave a workload out until it changes: a defect in its way must not stop the others."""
        self.broken[key] = internal_error("deciding about it", error)
        self.pending_queue.step_aside(key)
        self._timers.stop(ROLLBACK, key)
        self._problems.forget(key)
        self.cluster.touched.discard(key)
        result.errors[key] = error
        result.touched.add(key)

    def waiting(self) -> list[WorkloadKey]:
        """Return what waits, the next one first, without deciding anything."""
        return self.pending_queue.refreshed()

    def _observe(self, result: CycleResult, busy: Container[WorkloadKey], now: float) -> None:
        """Take note of what changed since the last round."""
        self.cluster.settle()
        self.tentative_placements.review()
        self.cluster.ledger.age(now)
        self.book.refresh(now, released=self.cluster.nominations.refresh())
        result.notes += self.defragmenter.advance(now)
        changed = result.touched = self.cluster.touched
        self.cluster.touched = set()
        ground = (self.cluster.table.tiers, self.cluster.ledger.version)
        if ground != self._ground:
            self._ground = ground
            changed = changed | {key for key in self.pending_queue.all() if key not in self.broken}
        rested = {key for key in self._resting if key not in busy}
        self._resting -= rested
        for key in changed | rested:
            try:
                if self._note(key, result) and self.pending_queue.blocked(key):
                    result.failed.append(key)
            except Exception as error:
                self._set_aside(key, error, result)
        if result.rearrangements:  # of an earlier leader: how far they are is looked at next
            result.wake(now)
        if self.cluster.freed != self._freed:
            self._freed = self.cluster.freed
            self._placer.thaw()
            self.pending_queue.thaw()
        self.cluster.settle()  # the first priority ever seen is a reason to count
        self._adopt(changed, result)

    def _adopt(self, changed: set[WorkloadKey], result: CycleResult) -> None:
        """Keep what earlier leaders kept, for the next in line first."""
        nominated = {
            key
            for key in changed
            if key in self.pending_queue and self.cluster.workloads[key].nominated
        }
        if not nominated:
            return
        # Half of a gang may stand on what it had taken over, and the rest of it comes first.
        half = {self.cluster.workloads[key].queue for key in self.pending_queue.half_placed()}
        for key in self.pending_queue.sort(nominated):
            workload = self.cluster.workloads[key]
            try:
                self.preemptor.adopt(workload, self.problem(workload), moot=workload.queue in half)
                self.pending_queue.update(key)
            except Exception as error:
                self._set_aside(key, error, result)

    def _note(self, key: WorkloadKey, result: CycleResult) -> bool:
        """Bring what is kept about one workload up to date; return whether it waits."""
        self.preemptor.note(key)
        workload = self.cluster.workloads.get(key)
        if workload is None:
            self.defragmenter.forget(key)
        elif (resumed := self.defragmenter.read(workload)) is not None:
            result.rearrangements.append(resumed)
        if self.pending_queue.update(key) and workload is not None:
            self.max_waits.note(workload)
            return True
        if not self.defragmenter.awaits(key):
            self.cluster.nominations.drop(key)
        self._resting.discard(key)
        self._timers.stop(ARRIVAL, key)
        self._timers.stop(ROLLBACK, key)
        self._problems.forget(key)
        self.broken.pop(key, None)
        return False

    def _commit(self, placement: Placement, now: float) -> None:
        decided = [(a.member.key, a.spot) for a in placement.assignments]
        # Strictly later than what came before: equals in importance are told apart by it.
        self._last = max(now, self._last + 1e-6)
        for one in placement.assignments:
            one.member.since = self._last
        try:
            self.cluster.assume(decided)
            # Nothing else has touched it: the next round need not look again.
            self.cluster.touched.discard(placement.workload)
            if placement.workload.kind == "Pod":
                self.pending_queue.drop(placement.workload)  # there is nothing left of it to place
            elif self.pending_queue.update(placement.workload):
                self._resting.add(placement.workload)
                self.pending_queue.step_aside(placement.workload)
        except Exception:
            self.cluster.retract(decided)
            raise
        self._timers.stop(ROLLBACK, placement.workload)
        self._placer.placed(placement)
