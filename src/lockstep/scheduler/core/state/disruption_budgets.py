"""PodDisruptionBudgets: how many more pods of some kind may go at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockstep.api.core import PodDisruptionBudget
from lockstep.api.selectors import LabelMatch, from_selector
from lockstep.scheduler.core.model.workload import Member, PodKey


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget, as far as choosing victims goes by it."""

    namespace: str
    name: str
    match: LabelMatch = field(compare=False)
    allowed: int = field(compare=False)
    """Pods of it that may go now, as its status says."""
    least: int | str | None = field(default=None, compare=False)
    """How many are to be there, as a number or a percentage of all."""
    most: int | str | None = field(default=None, compare=False)
    """How many may be missing, where it does not say how many are to be there."""

    def counted(self, pods: Iterable[Member]) -> int:
        """Return how many may go by what it asks for, when all that stand are well."""
        mine = [
            pod
            for pod in pods
            if pod.namespace == self.namespace and not pod.over and self.match.matches(pod.labels)
        ]
        least, most = _number(self.least, len(mine)), _number(self.most, len(mine))
        if least is None and most is None:
            return self.allowed
        desired = least if least is not None else len(mine) - (most or 0)
        standing = sum(pod.holds and not pod.terminating for pod in mine)
        return max(0, standing - max(0, desired))


def _number(stated: int | str | None, of: int) -> int | None:
    """Return a number, or a percentage rounded up, as the disruption controller reads them."""
    if stated is None or isinstance(stated, int):
        return stated
    part = stated.removesuffix("%")
    return -(-int(part) * of // 100) if part.isascii() and part.isdigit() else None


class Budgets:
    """All budgets there are."""

    def __init__(self) -> None:
        self._all: dict[str, dict[str, Budget]] = {}
        """By namespace and name."""
        self._pods: Mapping[PodKey, Member] | None = None

    def set(self, budget: PodDisruptionBudget) -> None:
        """Take in a budget.

        Raises:
            SelectorError: when its selector cannot be read.
        """
        meta = budget.metadata
        match = from_selector(budget.spec.selector)
        allowed = max(0, budget.status.disruptions_allowed)
        least, most = budget.spec.min_available, budget.spec.max_unavailable
        found = Budget(meta.namespace, meta.name, match, allowed, least, most)
        self._all.setdefault(meta.namespace, {})[meta.name] = found

    def remove(self, namespace: str, name: str) -> None:
        """Forget a budget."""
        self._all.get(namespace, {}).pop(name, None)

    def follow(self, pods: Mapping[PodKey, Member]) -> None:
        """Count from now on which of *pods* stand: on played time nothing writes statuses."""
        self._pods = pods

    def allowed(self, budget: Budget) -> int:
        """Return how many pods of a budget may go now."""
        return budget.allowed if self._pods is None else budget.counted(self._pods.values())

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

    def __init__(self, budgets: Budgets, gone: Iterable[Member] = ()) -> None:
        """*gone* are pods that are supposed to have gone already."""
        self._budgets = budgets
        self._spent: Counter[Budget] = budgets.asked(gone)
        self._allowed: dict[Budget, int] = {}

    def spend(self, members: Iterable[Member]) -> tuple[Budget, ...]:
        """Let pods go where that violates nothing; else return the budgets that it violates."""
        asked = self._budgets.asked(members)
        for one in asked.keys() - self._allowed.keys():
            self._allowed[one] = self._budgets.allowed(one)
        violated = [one for one, n in asked.items() if self._spent[one] + n > self._allowed[one]]
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
