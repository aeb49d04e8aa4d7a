"""What goes at once when somebody takes the place of others."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.scheduler.core.preemption.budgets import Budget
from lockstep.scheduler.core.queues.account import Account
from lockstep.scheduler.core.units import Member, UnitKey


@dataclass(frozen=True, slots=True)
class Chunk:
    """Pods that go together or not at all: a gang, or one member that it can do without."""

    key: UnitKey
    account: Account
    members: tuple[Member, ...]
    cost: tuple[object, ...]
    whole: bool
    violates: tuple[Budget, ...] = ()
    """The PodDisruptionBudgets that do not allow it."""

    @property
    def size(self) -> int:
        """Return its GPUs; a pod without any counts as one."""
        return sum(member.shape.gpus or 1 for member in self.members)
