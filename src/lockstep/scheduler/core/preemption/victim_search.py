"""The one search for the pods that must go, for preemption, reclaim and defragmentation.

The candidates are in the order of what losing them costs. As more of them go the workload can only
fit better, so the shortest beginning of that order with which it fits is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Member
from lockstep.scheduler.core.placement.what_if import WhatIf


class VictimSearch:
    """Candidates that go one after the other, in a world of which none of them has gone yet."""

    def __init__(
        self,
        state: WhatIf,
        candidates: Iterable[Sequence[Member]],
        place: Callable[[], Placement | None],
        allowed: Callable[[int], bool] = lambda number: True,
    ) -> None:
        """*place* tries the workload as things are then; *allowed* says, without a search, whether
        it may have any place with so many gone. Members that went with an earlier one count once.
        """
        self._state = state
        seen = set(state.gone)
        self._steps = [_new(members, seen) for members in candidates]
        self._place, self._allowed = place, allowed
        self._gone = 0

    def shortest(self, least: int = 0) -> tuple[int, Placement] | None:
        """Return the shortest beginning that suffices, and the place; just those are gone then.

        It is not looked below *least*. None where it does not do that all of them go.
        """
        low, high = least, len(self._steps)
        self._go(high)
        placement = self._place()
        if placement is None:
            return None
        while low < high:
            middle, found = (low + high) // 2, None
            if self._allowed(middle):
                self._go(middle)
                found = self._place()
            if found is None:
                low = middle + 1
            else:
                high, placement = middle, found
        self._go(high)
        return high, placement

    def _go(self, number: int) -> None:
        """Have the first *number* of the candidates gone, and no others."""
        steps, there = self._steps, self._gone
        self._state.restore([m for step in steps[number:there] for m in step])
        self._state.vacate([m for step in steps[there:number] for m in step])
        self._gone = number


def _new(members: Sequence[Member], seen: set[tuple[str, str]]) -> list[Member]:
    found = [member for member in members if member.key not in seen]
    seen.update(member.key for member in found)
    return found
