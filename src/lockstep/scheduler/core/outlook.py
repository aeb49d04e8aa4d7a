"""When what waits will start: the decider's own future, if all goes on as stated.

The decider itself is played on: what states its run time ends when that has passed, nothing new
comes, nothing fails. So an estimate is what the scheduler would do, passing and preemption
included, and not a second opinion. What states no run time never ends; whoever waits for that has
no estimate and is told whom it waits for, which is tried out too.

It uses up the cluster that it is given. Whoever goes on with that plays on a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from msgspec import structs

from lockstep.scheduler.core import words
from lockstep.scheduler.core.blocked import blocked
from lockstep.scheduler.core.decide import Decider
from lockstep.scheduler.core.placement import Placement
from lockstep.scheduler.core.round import Round
from lockstep.scheduler.core.units import Member, UnitKey

ROUNDS = 10_000
"""Decisions at one moment after which the rest of it is left to the next one."""
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


class Outlook:
    """The future of one moment, played moment by moment."""

    def __init__(self, decider: Decider, now: float) -> None:
        self.found: dict[UnitKey, Estimate] = {}
        """What is known so far of the units that wait for their place."""
        self._decider = decider
        self._cluster = decider.cluster
        self._now = self._began = now
        self._open: set[UnitKey] = set()
        self._runs: dict[UnitKey, list[Member]] = {}
        self._serials = count()
        self._due: dict[UnitKey, int] = {}
        """By unit, the number of the end that counts for it."""
        self._ends: list[tuple[float, int, UnitKey]] = []
        self._wake: float | None = now
        self._overdue: set[UnitKey] = set()
        self._beyond = False
        """Whether time is over, and all that never ends has been taken away."""
        self._in_the_way: dict[str, list[UnitKey]] = {}
        """By node, what never ended there."""
        self._take_in_waiting()
        self._take_in_standing()
        self._long = len(self._open) > LONG

    @property
    def waiting(self) -> int:
        """Return of how many units nothing is known yet."""
        return len(self._open)

    def advance(self) -> bool:
        """Play the next moment at which anything happens; return whether there is more to tell."""
        moment = self._next()
        if not self._open:
            return False
        if moment is None:
            return self._go_beyond()
        self._now = moment
        together = moment + MOMENT
        if self._long:
            together += GRAIN * (moment - self._began)
        while self._ends and self._ends[0][0] <= together:
            end, serial, key = heappop(self._ends)
            if self._due.get(key) == serial:
                self._now = max(moment, end)
                self._end(key)
        self._decide()
        return True

    def _next(self) -> float | None:
        moments = [self._ends[0][0]] if self._ends else []
        if self._wake is not None:
            moments.append(self._wake)
        return min(moments, default=None)

    # The present.

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
        condemned = {m.key for m in cluster.nominations.condemned(cluster.pods)}
        for member in list(cluster.pods.values()):
            if not member.holds:
                continue
            if member.terminating:
                cluster.remove_pod(*member.key)
                continue
            self._confirm(member)
            if member.key in condemned:
                self._send_back(member)
            elif member.ours or member.runtime is not None:
                self._runs.setdefault(_key(member), []).append(member)
        for key in self._runs:
            end = self._end_of(key)
            if end is not None and end <= self._now:
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
        serial = self._due[key] = next(self._serials)
        if end is not None:
            heappush(self._ends, (end, serial, key))

    def _end(self, key: UnitKey) -> None:
        for member in self._runs.pop(key, ()):
            self._cluster.remove_pod(*member.key)
        self._due.pop(key, None)
        if key.kind == "Gang":
            unit = self._cluster.units.get(key)
            for member in list(unit.members.values()) if unit is not None else ():
                self._cluster.remove_pod(*member.key)
            self._cluster.remove_gang(key.namespace, key.name)

    def _decide(self) -> None:
        """Let the decider decide, and carry it out at once, until it has nothing to add."""
        for _ in range(ROUNDS):
            found = self._decider.decide(self._now)
            self._carry_out(found)
            left = found.rollbacks or found.evictions or found.rearrangements
            if not (found.more or left or self._cluster.touched) or found.errors:
                break
        for key in self._open & self._decider.broken.keys():
            self._open.discard(key)
            self.found[key] = Estimate(None, self._decider.broken[key].message)
        wake = found.wake_at
        self._wake = wake if wake is not None and wake > self._now else None

    def _carry_out(self, found: Round) -> None:
        for placement in found.placements:
            self._start(placement)
        for rollback in found.rollbacks:
            self._lose(rollback.members)
        for rearrangement in found.rearrangements:
            for move in rearrangement.evictions(self._cluster):
                self._lose(move.victims)
        for eviction in found.evictions:
            self._lose(eviction.victims)

    def _start(self, placement: Placement) -> None:
        key = placement.unit
        for one in placement.assignments:
            self._confirm(one.member)
            self._runs.setdefault(key, []).append(one.member)
        self._cluster.touched.add(key)
        if key in self._open:
            self._open.discard(key)
            nodes = {one.spot.node for one in placement.assignments}
            self.found[key] = (
                Estimate(None, self._whom(key, nodes)) if self._beyond else Estimate(self._now)
            )
        self._plan_end(key, self._end_of(key))

    def _confirm(self, member: Member) -> None:
        """Take a binding for done: only what is done may be preempted."""
        if member.assumed:
            member.assumed = False
            unit = self._cluster.units.get(_key(member))
            if unit is not None:
                unit.changed()

    def _lose(self, members: Iterable[Member]) -> None:
        for member in members:
            key = _key(member)
            left = [m for m in self._runs.get(key, ()) if m.key != member.key]
            self._runs[key] = left
            if not left:
                del self._runs[key]
                self._due.pop(key, None)
            self._send_back(member)

    def _send_back(self, member: Member) -> None:
        """Let a pod of a gang wait again, as its successor will; one of its own is gone."""
        unit = self._cluster.units.get(_key(member))
        if unit is None or unit.gang is None:
            self._cluster.remove_pod(*member.key)
            return
        member.assumed, member.since = True, None
        self._cluster.forget(member.key, member.uid)
        if unit.gang.status.placed_at and not unit.bound:
            status = structs.replace(unit.gang.status, placed_at=None)
            self._cluster.set_gang(structs.replace(unit.gang, status=status))

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
        self._decide()
        self._wake = None
        for _, _, key in self._ends:  # what is placed now and would end is in nobody's way
            self._end(key)
        self._ends.clear()
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
