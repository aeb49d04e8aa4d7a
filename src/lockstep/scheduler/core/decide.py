"""The decision round: what waits, in order, and what becomes of it now."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from lockstep.api.gang import Strategy
from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.backfill import Backfill
from lockstep.scheduler.core.blocked import Verdict
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.defrag.defragmenter import STATED, Defragmenter
from lockstep.scheduler.core.defrag.due import Due
from lockstep.scheduler.core.defrag.movers import Costs
from lockstep.scheduler.core.defrag.turn import Turn
from lockstep.scheduler.core.failures import stumbled
from lockstep.scheduler.core.fit import members_fit
from lockstep.scheduler.core.gathering import Gathering
from lockstep.scheduler.core.line import Kind, Line
from lockstep.scheduler.core.patience import Patience
from lockstep.scheduler.core.placement import Assignment, Placement, place_on
from lockstep.scheduler.core.preemption.preemptor import Eviction, Preemptor
from lockstep.scheduler.core.problem import strategy_of
from lockstep.scheduler.core.problems import Problems
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.returning import Returning
from lockstep.scheduler.core.round import Round
from lockstep.scheduler.core.starts import Starts
from lockstep.scheduler.core.streak import Streak
from lockstep.scheduler.core.timeouts import TimeOuts
from lockstep.scheduler.core.turns import Turns
from lockstep.scheduler.core.units import Unit, UnitKey

PLANS_PER_ROUND = 4
"""Units for which one round looks for whom to evict; the others follow in the next."""


class Decider:
    """Makes the decisions over one cluster, round by round.

    A unit that found no place is looked at again only when it changed or when something was freed.
    One that does not fit lets others pass it: places are given out in order, not held back.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        costs: Costs = STATED,
        policy: DefragmentationPolicy | None = None,
    ) -> None:
        """*costs* and *policy* are those of moving gangs; the policy for queues that state none."""
        self.cluster = cluster
        self._problems = Problems(cluster)
        self.problem = self._problems.of
        """Tells of a unit what it asks for; None where it is blocked by itself."""
        self.line = Line(cluster, self._kind)
        self.broken: dict[UnitKey, Verdict] = {}
        """Units that cannot be decided about until they change, and what happened."""
        self.preemptor = Preemptor(cluster)
        self.backfill = Backfill(cluster, self.problem)
        self.starts = Starts(cluster)
        self.returning = Returning(cluster)
        self.timeouts = TimeOuts()
        self._gathering = Gathering()
        self.defragmenter = Defragmenter(cluster, self.preemptor, costs)
        self.defragmentation = Turn(self.defragmenter, self.backfill, Due(cluster, policy))
        self._plans_left = 0
        self._last = 0.0
        self._streak = Streak(cluster.table)
        self._resting: set[UnitKey] = set()
        """Units stepped over because bindings or pods of theirs are under way."""
        self._failed: set[tuple[object, ...]] = set()
        self._freed = -1
        self._ground: tuple[object, ...] = ()
        self._patience = Patience()

    def decide(self, now: float, *, busy: Container[UnitKey] = (), limit: int = 512) -> Round:
        """Decide about what may have a place now, up to *limit* pods.

        Units in *busy* (their bindings are under way) are left for later.
        """
        result = Round()
        self._absorb(result, busy, now)
        for key, verdict in self.timeouts.take(self.cluster, now):
            self._give_up(key, verdict, result)
        placed, self._plans_left = 0, PLANS_PER_ROUND
        waits = self.returning.until(now)
        for key in self._candidates(others=waits is None):
            if placed >= limit:
                result.more = True
                break
            if key in busy or key in self._resting or self._gathers(key, now, result):
                self._resting.add(key)
                self.line.step_aside(key)
                continue
            try:
                placed += self._decide_one(key, now, result)
            except Exception as error:
                self._set_aside(key, error, result)
            if result.more:
                break
        if waits is not None:
            result.wake(waits)
        elif not result.more:
            self._defragment(now, busy, result)
        self.returning.expect(result.evictions, now)
        if self.starts:  # they may break what is promised, so that others may go for more
            self.backfill.refresh(now, released=False)
        moved = result.evictions or result.rearrangements or self.cluster.freed != self._freed
        cut_short = result.more and placed < limit
        self.starts.hand_out(result, now, settled=not (moved or cut_short), waits=waits)
        for due in (self.backfill.wake_at, self.timeouts.next, self.preemptor.wake_at(now)):
            if due is not None:
                result.wake(due)
        self.cluster.ledger.rest()
        return result

    def _gathers(self, key: UnitKey, now: float, result: Round) -> bool:
        """Return whether more pods of a gang are on their way; then ask to be back for it."""
        until = self._gathering.until(self.cluster.units[key], now)
        if until is not None:
            result.wake(until)
        return until is not None

    def _defragment(self, now: float, busy: Container[UnitKey], result: Round) -> None:
        """Let others move for one gang that waits, where that was asked for or is due."""
        chance = self.defragmentation.next(self.line, now, busy, self.problem)
        if (moment := self.defragmentation.wake_at) is not None:
            result.wake(moment)
        if chance is None:
            return
        key = chance.look.unit.key
        try:
            with self.backfill.lifted(chance.look.unit, now):
                found = self.defragmentation.take(chance)
        except Exception as error:
            self._set_aside(key, error, result)
            return
        result.touched.add(key)
        if found is not None:
            result.rearrangements.append(found)
            self.line.step_aside(key)
        result.more = True  # another gang may be due

    def _candidates(self, *, others: bool) -> Iterator[UnitKey]:
        """Yield the units to try in order; each is placed, shut or set aside before the next.

        Without *others* only those that have a part of their place, or one that is kept for them.
        """
        yield from self.line.half_placed()
        nominated = {nomination.unit for nomination in self.cluster.nominations}
        yield from self.line.sort(nominated) if nominated else ()
        if others:
            yield from Turns(self.line, self.cluster, self.problem)

    def _decide_one(self, key: UnitKey, now: float, result: Round) -> int:
        """Decide about one unit; return how many of its pods were placed."""
        unit = self.cluster.units[key]
        stands = key in self.cluster.nominations
        with self.backfill.lifted(unit, now):
            if stands:
                placement = self._stand(unit, now, result)
                if placement is None:
                    return 0
            else:
                placement = self._place(unit, exempt=self.backfill.exempt(unit, now))
            if placement is None and self._evict_for(unit, now, result):
                return 0
        if placement is None:
            self._reserve(unit, now)
            self._patience.consider(unit, now, result)
            self.line.shut(key)
            result.failed.append(key)
            self.broken.pop(key, None)
            return 0
        self._commit(placement, now)
        self.backfill.placed(unit, placement, now)
        self.starts.hold(placement, now, grows=stands and key in self._resting)
        self.broken.pop(key, None)
        return len(placement.assignments)

    def _reserve(self, unit: Unit, now: float) -> None:
        """Tell when a unit that does not fit can start, and keep what it needs until then."""
        if not self.backfill.may_promise(unit, now):
            return
        problem = self.problem(unit)
        if problem is not None and any(quota.need for quota in problem.needs):
            self.backfill.reserve(unit, problem, now)

    def _stand(self, unit: Unit, now: float, result: Round) -> Placement | None:
        """Return the place of a unit for which others leave, once they have."""
        if self.defragmenter.awaits(unit.key):
            return None
        problem = self.problem(unit)
        if problem is None:
            self.cluster.nominations.drop(unit.key)
            return None
        nomination = self.cluster.nominations.get(unit.key)
        if nomination is not None and nomination.purpose == "Moving":
            problem = replace(problem, needs=problem.wants)  # the place is there for all of it
        placement, eviction = self.preemptor.stand(unit, problem, now)
        if eviction is not None:
            self._make_way(eviction, result)
        elif placement is None and unit.key not in self.cluster.nominations:
            self.line.update(unit.key)
            result.touched.add(unit.key)
        return placement

    def _evict_for(self, unit: Unit, now: float, result: Round) -> bool:
        """Let others leave for a unit without a place; return whether that ends its turn."""
        problem = self.problem(unit)
        if problem is None or not self.preemptor.worth_a_look(unit, problem):
            return False
        if not self._plans_left:
            result.more = True
            self.backfill.withhold()
            return True
        self._plans_left -= 1
        rows = self.backfill.open_to(unit, now)
        eviction, again = self.preemptor.evict_for(unit, problem, now, rows)
        if eviction is not None:
            self._make_way(eviction, result)
            result.touched.add(unit.key)
            self.line.step_aside(unit.key)
        elif again:
            self._resting.add(unit.key)
            self.line.step_aside(unit.key)
            self.backfill.withhold()
            result.failed.append(unit.key)
        return eviction is not None or again

    def _make_way(self, eviction: Eviction, result: Round) -> None:
        """Have those leave who have started; who was about to has not, and waits again."""
        self.starts.take_back(eviction.taken_back)
        if eviction.victims:
            result.evictions.append(eviction)

    def _give_up(self, key: UnitKey, verdict: Verdict, result: Round) -> None:
        """Try a gang no more that has waited for as long as it may, and keep nothing for it."""
        self.broken[key] = verdict
        self.line.step_aside(key)
        self.cluster.nominations.drop(key)
        self.backfill.release(key)
        result.given_up[key] = verdict
        result.touched.add(key)

    def _set_aside(self, key: UnitKey, error: Exception, result: Round) -> None:
        """Leave a unit out until it changes: a defect in its way must not stop the others."""
        self.broken[key] = stumbled("deciding about it", error)
        self.line.step_aside(key)
        self._patience.forget(key)
        self._problems.forget(key)
        self.cluster.touched.discard(key)
        result.errors[key] = error
        result.touched.add(key)

    def waiting(self) -> list[UnitKey]:
        """Return what waits, the next one first, without deciding anything."""
        self.cluster.settle()
        for key in self.cluster.units:
            self.line.update(key)
        return self.line.all()

    def _absorb(self, result: Round, busy: Container[UnitKey], now: float) -> None:
        """Take note of what changed since the last round."""
        self.cluster.settle()
        self.starts.review()
        self.cluster.ledger.age(now)
        self.cluster.memory.count(now)
        self.backfill.refresh(now, released=self.cluster.nominations.refresh())
        result.notes += self.defragmenter.advance(now)
        changed = result.touched = self.cluster.touched
        self.cluster.touched = set()
        ground = (self.cluster.table.tiers, self.cluster.ledger.version)
        if ground != self._ground:
            self._ground = ground
            changed = changed | {key for key in self.line.all() if key not in self.broken}
        rested = {key for key in self._resting if key not in busy}
        self._resting -= rested
        for key in changed | rested:
            try:
                if self._note(key, result) and self.line.blocked(key):
                    result.failed.append(key)
            except Exception as error:
                self._set_aside(key, error, result)
        if result.rearrangements:  # of an earlier leader: how far they are is looked at next
            result.wake(now)
        if self.cluster.freed != self._freed:
            self._freed = self.cluster.freed
            self._failed.clear()
            self.line.thaw()
        self.cluster.settle()  # the first priority ever seen is a reason to count
        self._adopt(changed, result)

    def _adopt(self, changed: set[UnitKey], result: Round) -> None:
        """Keep what earlier leaders kept, for the next in line first."""
        nominated = {
            key for key in changed if key in self.line and self.cluster.units[key].nominated
        }
        if not nominated:
            return
        # Half of a gang may stand on what it had taken over, and the rest of it comes first.
        half = {self.cluster.units[key].queue for key in self.line.half_placed()}
        for key in self.line.sort(nominated):
            unit = self.cluster.units[key]
            try:
                self.preemptor.adopt(unit, self.problem(unit), moot=unit.queue in half)
                self.line.update(key)
            except Exception as error:
                self._set_aside(key, error, result)

    def _note(self, key: UnitKey, result: Round) -> bool:
        """Bring what is kept about one unit up to date; return whether it waits."""
        self.preemptor.note(key)
        unit = self.cluster.units.get(key)
        if unit is None:
            self.defragmenter.forget(key)
        elif (resumed := self.defragmenter.read(unit)) is not None:
            result.rearrangements.append(resumed)
        if self.line.update(key) and unit is not None:
            self.timeouts.note(unit)
            return True
        if not self.defragmenter.awaits(key):
            self.cluster.nominations.drop(key)
        self._resting.discard(key)
        self._gathering.forget(key)
        self._patience.forget(key)
        self._problems.forget(key)
        self.broken.pop(key, None)
        return False

    def _kind(self, unit: Unit) -> Kind | None:
        """Return what units share that fit or fail alike in one queue."""
        problem = self.problem(unit)
        if problem is None or unit.key in self.cluster.nominations:
            return None
        if problem.single:
            shape = problem.items[0].shape.id
            return shape, self.cluster.priorities.rank(unit), _class(unit.runtime)
        if unit.bound:  # where the others stand follows from this one
            return unit.key
        return problem.signature, self.cluster.priorities.rank(unit), _class(unit.runtime)

    def _place(self, unit: Unit, *, exempt: bool) -> Placement | None:
        problem = self.problem(unit)
        if problem is None or (self._failed and (problem.signature, exempt) in self._failed):
            return None
        if admission.over_quota(self.cluster, unit, problem) is not None:
            return None
        alike = problem.single and self.cluster.fits.preference(problem.strategy).steady
        row = self._streak.row(problem.items[0].shape) if alike else None
        if row is not None and not self.cluster.ledger.by_model:
            return place_on(self.cluster.table, row, unit.key, problem.members[0][0])
        placement = admission.place(self.cluster, unit, problem)
        if placement is None or not placement.assignments:
            if not admission.selective(self.cluster, problem):
                self._failed.add((problem.signature, exempt))
            return None
        return placement

    def _commit(self, placement: Placement, now: float) -> None:
        decided = [(a.member.key, a.spot) for a in placement.assignments]
        # Strictly later than whoever came before: equals in importance are told apart by it.
        self._last = max(now, self._last + 1e-6)
        for one in placement.assignments:
            one.member.since = self._last
        try:
            self.cluster.assume(decided)
            # Nobody else has touched it: the next round need not look again.
            self.cluster.touched.discard(placement.unit)
            if placement.unit.kind == "Pod":
                self.line.drop(placement.unit)  # there is nothing left of it to place
            elif self.line.update(placement.unit):
                self._resting.add(placement.unit)
                self.line.step_aside(placement.unit)
        except Exception:
            self.cluster.retract(decided)
            raise
        self._patience.forget(placement.unit)
        if len(decided) == 1 and placement.unit.kind == "Pod":
            strategy = strategy_of(self.cluster, self.cluster.units[placement.unit])
            self._continue_with(placement.assignments[0], strategy)

    def _continue_with(self, last: Assignment, strategy: Strategy | None) -> None:
        """Remember where the next pod like the last one goes."""
        table, shape = self.cluster.table, last.member.shape
        row = table.rows[last.spot.node]
        left = self._streak.rest(shape, row)
        if left is None:
            left = int(members_fit(table.free[:, row : row + 1], shape)[0])
        steady = self.cluster.fits.preference(strategy).steady
        self._streak.placed(shape, row, left if steady else 0)


def _class(runtime: float | None) -> int:
    """Return of which order of magnitude a run time is, so that alike units are of one kind."""
    return -1 if runtime is None else int(runtime).bit_length()
