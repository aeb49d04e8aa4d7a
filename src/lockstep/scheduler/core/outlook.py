"""When what waits will start: the decider's own future, if all goes on as stated.

The decider itself is played on, by the clock of simulations: what states its run time ends when
that has passed, nothing new comes, nothing fails. So an estimate is what the scheduler would do,
passing and preemption included, and not a second opinion. What states no run time never ends;
whoever waits for that has no estimate and is told whom it waits for, which is tried out too.

It uses up the cluster that it is given. Whoever goes on with that plays on a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from lockstep.api import timestamp
from lockstep.api.names import MAX_WAIT_ANNOTATION
from lockstep.scheduler.core import words
from lockstep.scheduler.core.blocked import Verdict, blocked
from lockstep.scheduler.core.decide import Decider
from lockstep.scheduler.core.defrag.rearrangement import Rearrangement
from lockstep.scheduler.core.failures import stumbled
from lockstep.scheduler.core.placement import Placement
from lockstep.scheduler.core.playback import ROUNDS, Playback, wait_anew
from lockstep.scheduler.core.preemption.preemptor import Eviction
from lockstep.scheduler.core.round import Rollback
from lockstep.scheduler.core.said import span
from lockstep.scheduler.core.units import Member, UnitKey

MOMENT = 0.01
"""Seconds within which ends are one event: placements are numbered by millionths of seconds."""
LONG = 500
"""Waiting units beyond which the future is played in coarser steps, the further the coarser."""
GRAIN = 0.005
"""Part of the time ahead within which ends are one event then."""
NAMED = 2
"""Units named that are waited for; the rest is summed up."""
OWN_PODS = "what it waits for is something about itself"
NEVER = "it would not start even if all that runs had ended"


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a waiting unit starts, or why nobody can tell."""

    at: float | None
    """Unix time; None where it cannot be told."""
    why: str = ""
    """Why it cannot be told."""
    not_before: float | None = None
    """Unix time before which it does not start, where no more than that can be told."""


class Outlook:
    """The future of one moment, played moment by moment."""

    def __init__(self, decider: Decider, now: float, *, rounds: int = ROUNDS) -> None:
        self.found: dict[UnitKey, Estimate] = {}
        """What is known so far of the units that wait for their place."""
        self._decider = decider
        self._cluster = decider.cluster
        self._clock = Playback(decider, self, origin=now, rounds=rounds)
        self._began = now
        self._open: set[UnitKey] = set()
        self._runs: dict[UnitKey, list[Member]] = {}
        self._overdue: set[UnitKey] = set()
        self._beyond = False
        """Whether time is over, and all that never ends has been taken away."""
        self._in_the_way: dict[str, list[UnitKey]] = {}
        """By node, what never ended there."""
        self._cluster.budgets.follow(self._cluster.pods)
        self._take_in_limits()
        self._take_in_waiting()
        self._take_in_standing()
        self._long = len(self._open) > LONG

    @property
    def waiting(self) -> int:
        """Return of how many units nothing is known yet."""
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
        """Let those give up whom their jobs end when they have waited for too long."""
        for unit in list(self._cluster.units.values()):
            gang = unit.gang
            stated = gang.metadata.annotations.get(MAX_WAIT_ANNOTATION) if gang else None
            if gang is not None and stated is not None and span(stated) is not None:
                self._cluster.set_gang(replace(gang, spec=replace(gang.spec, max_wait=stated)))

    def _take_in_waiting(self) -> None:
        for key in self._decider.line.all():
            unit = self._cluster.units[key]
            if unit.bound:
                continue  # what waits are members that it can do without, or that it lost
            if key in self._decider.broken or blocked(self._cluster, unit) is not None:
                self.found[key] = Estimate(None, OWN_PODS)
            else:
                self._open.add(key)

    def _take_in_standing(self) -> None:
        """Let bindings under way succeed, and what is on its way out be gone."""
        cluster = self._cluster
        self._decider.returning.cease()
        condemned = {m.key for m in cluster.nominations.condemned(cluster.pods)}
        for member in list(cluster.pods.values()):
            if not member.holds:
                continue
            if member.terminating:
                cluster.remove_pod(*member.key)
                continue
            if member.assumed and (unit := cluster.units.get(_key(member))) is not None:
                unit.confirm()
            if member.key in condemned:
                self._send_back(member)
            elif member.ours or member.runtime is not None:
                self._runs.setdefault(_key(member), []).append(member)
        for key in self._runs:
            end = self._end_of(key)
            if end is not None and end <= self._began:
                self._overdue.add(key)
            else:
                self._plan_end(key, end)

    def _end_of(self, key: UnitKey) -> float | None:
        """Return when a unit that stands ends as stated; None where nothing is stated."""
        unit = self._cluster.units.get(key)
        source = unit if unit is not None and unit.is_gang else self._runs[key][0]
        since, runtime = source.since, source.runtime
        return None if since is None or runtime is None else since + runtime

    # What happens.

    def _plan_end(self, key: UnitKey, end: float | None) -> None:
        """Let this end count for a unit, and no other that was planned before."""
        if end is None:
            self._clock.agenda.drop(key)
        else:
            self._clock.agenda.replace(key, end - self._began, self._end, key)

    def _end(self, key: UnitKey) -> None:
        for member in self._runs.pop(key, ()):
            self._cluster.remove_pod(*member.key)
        self._clock.agenda.drop(key)
        if key.kind == "Gang":
            unit = self._cluster.units.get(key)
            for member in list(unit.members.values()) if unit is not None else ():
                self._cluster.remove_pod(*member.key)
            self._cluster.remove_gang(key.namespace, key.name)

    def stand(self, placement: Placement) -> None:
        """Note who starts, and when it ends."""
        key = placement.unit
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

    def stumble(self, key: UnitKey, error: Exception) -> None:
        """Tell a unit over which the decision fails that nobody knows more of it."""
        self._tell(key, Estimate(None, stumbled("deciding about it", error).message))

    def give_up(self, key: UnitKey, verdict: Verdict) -> None:
        """Tell a unit that it will have waited too long before it could start."""
        self._tell(key, Estimate(None, verdict.message))
        self._end(key)

    def _tell(self, key: UnitKey, estimate: Estimate) -> None:
        if key in self._open:
            self._open.discard(key)
            self.found[key] = estimate

    def _lose(self, members: Iterable[Member]) -> None:
        for member in members:
            key = _key(member)
            left = [m for m in self._runs.get(key, ()) if m.key != member.key]
            self._runs[key] = left
            if not left:
                del self._runs[key]
                self._clock.agenda.drop(key)
            self._send_back(member)

    def _send_back(self, member: Member) -> None:
        """Let a pod of a gang wait again, as its successor will; one of its own is gone."""
        unit = self._cluster.units.get(_key(member))
        if unit is None or unit.gang is None:
            self._cluster.remove_pod(*member.key)
            return
        member.assumed, member.since = True, None
        self._cluster.forget(member.key, member.uid)
        wait_anew(self._cluster, unit, self._clock.unix)

    # What never ends.

    def _go_beyond(self) -> bool:
        """Take away what never ends and see who starts then; return whether anybody did."""
        self._beyond = True
        for key, members in self._runs.items():
            for node in dict.fromkeys(member.node for member in members):
                self._in_the_way.setdefault(node, []).append(key)
        for key in list(self._runs):
            self._end(key)
        before = len(self._open)
        self._clock.settle()
        for key in list(self._runs):  # what is placed now and would end is in nobody's way
            if self._end_of(key) is not None:
                self._end(key)
        if len(self._open) < before:
            return bool(self._open)
        self.found |= dict.fromkeys(self._open, Estimate(None, NEVER))
        self._open.clear()
        return False

    def _whom(self, key: UnitKey, nodes: Collection[str]) -> str:
        """Return in words what never ends where a unit would go; others' names are nobody's."""
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
            return f"{words.listing(parts)} {'have' if plural else 'has'} no expected run time"
        return f"{words.listing(parts)} {'run' if plural else 'runs'} longer than expected"


def _key(member: Member) -> UnitKey:
    return member.unit or UnitKey("Pod", member.namespace, member.name)
