"""What goes at once when somebody takes the place of others."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.state.disruption_budgets import Budget


@dataclass(frozen=True, slots=True)
class Victim:
    """Pods that go together or not at all: a gang, or one member that it can do without."""

    key: WorkloadKey
    account: Account
    members: tuple[Member, ...]
    cost: tuple[object, ...]
    whole: bool
    violates: tuple[Budget, ...] = ()
    """The PodDisruptionBudgets that do not allow it."""

    @property
    def gpus(self) -> int:
        """Return the GPUs that it holds whole."""
        return sum(member.shape.gpus for member in self.members)

    @property
    def size(self) -> int:
        """Return its GPUs; a pod without any counts as one."""
        return sum(member.shape.gpus or 1 for member in self.members)
