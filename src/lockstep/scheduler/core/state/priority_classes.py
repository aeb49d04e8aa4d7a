"""How important workloads are, and whose place they may take: their priority classes, or their
pods."""

from __future__ import annotations

from lockstep.api.core import PriorityClass
from lockstep.scheduler.core.model.workload import Workload


class Priorities:
    """The priority classes that there are."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._polite: set[str] = set()
        """Classes that never preempt."""

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def set(self, priority_class: PriorityClass) -> None:
        """Take in a priority class."""
        name = priority_class.metadata.name
        self._values[name] = priority_class.value
        never = priority_class.preemption_policy == "Never"
        (self._polite.add if never else self._polite.discard)(name)

    def remove(self, name: str) -> None:
        """Forget a priority class."""
        self._values.pop(name, None)
        self._polite.discard(name)

    def of(self, workload: Workload) -> int:
        """Return a workload's priority: its gang's class where it names one, else its pods'."""
        stated = self.stated(workload)
        if stated is not None:
            return stated
        members = workload.members.values()
        if len(members) == 1:  # most workloads are one pod
            (only,) = members
            return only.priority
        return max((m.priority for m in members), default=0)

    def stated(self, workload: Workload) -> int | None:
        """Return the value of the class that a workload's gang names; None where there is none."""
        named = _class_of(workload)
        return self._values.get(named) if named else None

    def rank(self, workload: Workload) -> tuple[int, bool]:
        """Return how important a workload is, and whether others may have to go for it."""
        return self.of(workload), self.may_preempt(workload)

    def may_preempt(self, workload: Workload) -> bool:
        """Return whether a workload's priority class lets it take the place of others."""
        return _class_of(workload) not in self._polite and all(
            m.preempts for m in workload.members.values()
        )


def _class_of(workload: Workload) -> str:
    return workload.gang.spec.priority_class_name if workload.gang is not None else ""
