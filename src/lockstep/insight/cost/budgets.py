"""How far the budgets of a month are spent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from lockstep.api.price_list import Budget
from lockstep.api.team import Team
from lockstep.insight.cost import billing
from lockstep.insight.cost.prices import Prices
from lockstep.insight.history.records import Claim, NodeSpan

State = Literal["", "nearly spent", "overspent"]
CLUSTER: Final = "the cluster"
HELD_BY: Final = "budget: "
"""What the words begin with by which a budget holds a gang."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What of a budget is spent, in its currency."""

    budget: Budget
    month: str
    currency: str
    spent: float
    team: str = ""
    """Whose budget it is, if it is a team's, and its namespaces."""
    namespaces: tuple[str, ...] = ()

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
        named["team"] = self.team
        found = [f"{kind} {name}" for kind, name in named.items() if name]
        return found[0] if found else CLUSTER

    def covers(self, queue: str, namespace: str, user: str) -> bool:
        """Tell whether what a gang of these three costs counts in it."""
        if self.team:
            return namespace in self.namespaces
        one = self.budget
        pairs = ((one.queue, queue), (one.namespace, namespace), (one.user, user))
        return all(wanted in ("", given) for wanted, given in pairs)

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


def held(queue: str, namespace: str, user: str, told: Sequence[Standing]) -> str:
    """Return why a gang of these three is not to start now; empty where it may.

    The words stay the same for the month, so that nothing is written again and again.
    """
    for one in told:
        budget = one.budget
        spent = budget.hold and one.spent > budget.month
        if spent and one.covers(queue, namespace, user):
            where = "Team" if one.team else "PriceList"
            return (
                f"{HELD_BY}the {budget.month:.2f} {one.currency} of {one.subject} for {one.month} "
                f"are spent; jobs start again when the month ends or the {where} allows more"
            )
    return ""


def standings(
    nodes: Sequence[NodeSpan],
    claims: Sequence[Claim],
    prices: Prices,
    *,
    end: float,
    teams: Sequence[Team] = (),
) -> list[Standing]:
    """Return what of each budget is spent in the month of *end*, until then; fullest first.

    The budgets are those of *prices* and of *teams*.

    *nodes* and *claims* must be all that last some time within that month.
    """
    owners = [(one, one.spec.budget) for one in teams if one.spec.budget is not None]
    if not prices.budgets and not owners:
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
    for team, own in owners:
        spaces = tuple(team.spec.namespaces) or (team.metadata.name,)
        cost = sum(line.cost for key, line in found.lines.items() if key[1] in spaces)
        budget = Budget(month=own.month, warn_at=own.warn_at, hold=own.hold)
        name = team.metadata.name
        told.append(Standing(budget, month, prices.currency, cost, name, spaces))
    return sorted(told, key=lambda one: -one.ratio)
