"""PodDisruptionBudgets: how many more pods of some kind may go before somebody minds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from lockstep.api.core import PodDisruptionBudget
from lockstep.api.selectors import LabelMatch, from_selector
from lockstep.scheduler.core.units import Member


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget, as far as choosing victims goes by it."""

    namespace: str
    name: str
    match: LabelMatch = field(compare=False)
    allowed: int = field(compare=False)
    """Pods of it that may go now."""


class Budgets:
    """All budgets there are."""

    def __init__(self) -> None:
        self._all: dict[str, dict[str, Budget]] = {}
        """By namespace and name."""

    def set(self, budget: PodDisruptionBudget) -> None:
        """Take in a budget.

        Raises:
            SelectorError: when its selector cannot be read.
        """
        meta = budget.metadata
        match = from_selector(budget.spec.selector)
        allowed = max(0, budget.status.disruptions_allowed)
        found = Budget(meta.namespace, meta.name, match, allowed)
        self._all.setdefault(meta.namespace, {})[meta.name] = found

    def remove(self, namespace: str, name: str) -> None:
        """Forget a budget."""
        self._all.get(namespace, {}).pop(name, None)

    def __bool__(self) -> bool:
        return any(self._all.values())

    def asked(self, members: Iterable[Member]) -> Counter[Budget]:
        """Return by budget how many of some pods it protects."""
        found: Counter[Budget] = Counter()
        for member in members:
            for budget in self._all.get(member.namespace, {}).values():
                if budget.match.matches(member.labels):
                    found[budget] += 1
        return found


class Allowance:
    """What is left of the budgets while victims are chosen one after the other."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._spent: Counter[Budget] = Counter()

    def spend(self, members: Iterable[Member]) -> tuple[Budget, ...]:
        """Let pods go where that violates nothing; else return the budgets that it violates."""
        asked = self._budgets.asked(members)
        violated = [one for one, n in asked.items() if self._spent[one] + n > one.allowed]
        if not violated:
            self._spent.update(asked)
        return tuple(sorted(violated, key=lambda one: (one.namespace, one.name)))


def in_words(violated: Iterable[Budget], namespace: str) -> str:
    """Return what is said of budgets that are violated; those of others are not named."""
    found = list(violated)
    names = [one.name for one in found if one.namespace == namespace]
    if len(names) < len(found):
        names.append("one of another namespace")
    return f"that violates the PodDisruptionBudget {' and '.join(names)}" if names else ""
