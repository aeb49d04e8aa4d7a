"""What one decision round hands to the binder and the evictor."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockstep.scheduler.core.defrag.migration import Rearrangement
from lockstep.scheduler.core.model.decisions import Eviction, Note, Placement, Rollback, Verdict
from lockstep.scheduler.core.model.workload import WorkloadKey


@dataclass(slots=True)
class CycleResult:
    """What one round decided. The placements are counted in the state already."""

    placements: list[Placement] = field(default_factory=list)
    rollbacks: list[Rollback] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    """Pods whose place another workload gets; it is kept free from now on."""
    rearrangements: list[Rearrangement] = field(default_factory=list)
    """Gangs for which others move; all new places are kept from now on."""
    notes: list[Note] = field(default_factory=list)
    """What is to be told as Events."""
    failed: list[WorkloadKey] = field(default_factory=list)
    """Workloads looked at that have no place now."""
    errors: dict[WorkloadKey, Exception] = field(default_factory=dict)
    """Workloads over which the decision itself failed; nothing about them was decided."""
    given_up: dict[WorkloadKey, Verdict] = field(default_factory=dict)
    """Gangs that have waited for as long as they may, and what is said of them."""
    touched: set[WorkloadKey] = field(default_factory=set)
    """Workloads that changed since the last round, whether they wait or not."""
    more: bool = False
    """Whether the round stopped at its limit with workloads left to look at."""
    wake_at: float | None = None
    """When to come back even if nothing happens."""

    def wake(self, at: float) -> None:
        """Ask to be back at some time at the latest."""
        self.wake_at = at if self.wake_at is None else min(at, self.wake_at)
