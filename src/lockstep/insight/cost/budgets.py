"""How far the budgets of a month are spent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from lockstep.api.price_list import Budget
from lockstep.insight.cost import billing
from lockstep.insight.cost.prices import Prices
from lockstep.insight.history.records import Claim, NodeSpan

State = Literal["", "nearly spent", "overspent"]
CLUSTER: Final = "the cluster"


@dataclass(frozen=True, slots=True)
class Standing:
    """What of a budget is spent, in its currency."""

    budget: Budget
    month: str
    currency: str
    spent: float

    @property
    def ratio(self) -> float:
        """Return the part that is spent."""
        return self.spent / self.budget.month

    @property
    def state(self) -> State:
        """Say whether there is something to warn of."""
        if self.spent > self.budget.month:
            return "overspent"
        return "nearly spent" if self.ratio >= self.budget.warn_at else ""

    @property
    def subject(self) -> str:
        """Return whose budget it is."""
        one = self.budget
        named = {"queue": one.queue, "namespace": one.namespace, "user": one.user}
        found = [f"{kind} {name}" for kind, name in named.items() if name]
        return found[0] if found else CLUSTER

    @property
    def words(self) -> str:
        """Return it as a sentence."""
        return (
            f"the budget of {self.subject} for {self.month} is {self.state or 'not spent'}: "
            f"{self.spent:.2f} of {self.budget.month:.2f} {self.currency} ({self.ratio:.0%})"
        )

    def tree(self) -> dict[str, Any]:
        """Return it as JSON."""
        one = self.budget
        named = {"queue": one.queue, "namespace": one.namespace, "user": one.user}
        return {
            **{kind: name for kind, name in named.items() if name},
            "month": one.month,
            "spent": round(self.spent, 2),
            "ratio": round(self.ratio, 6),
            "state": self.state or "within",
        }


def standings(
    nodes: Sequence[NodeSpan], claims: Sequence[Claim], prices: Prices, *, end: float
) -> list[Standing]:
    """Return what of each budget is spent in the month of *end*, until then; fullest first.

    *nodes* and *claims* must be all that last some time within that month.
    """
    if not prices.budgets:
        return []
    last = end - 1
    start, month = billing.month_start(last), billing.month_of(last)
    by = ("queue", "namespace", "user")
    found = billing.bill(nodes, claims, prices, by=by, start=start, end=end)

    def spent(one: Budget) -> float:
        wanted = (one.queue, one.namespace, one.user)
        if not any(wanted):
            return found.total.cost
        return sum(
            line.cost
            for key, line in found.lines.items()
            if all(w in ("", k) for w, k in zip(wanted, key, strict=True))
        )

    told = [Standing(one, month, prices.currency, spent(one)) for one in prices.budgets]
    return sorted(told, key=lambda one: -one.ratio)
