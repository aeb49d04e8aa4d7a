"""Which prices and budgets one namespace is told of: none that names another team. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from lockstep.api.price_list import Price
from lockstep.api.team import Team
from lockstep.insight.cost.budgets import Standing
from lockstep.insight.cost.prices import Prices
from lockstep.insight.history.records import Claim, NodeSpan

HARDWARE: Final = ("nvidia.com", "amd.com", "kubernetes.io", "karpenter.sh")
"""Prefixes of labels that say what a node is; a price by any other label may name a team."""


def present(claims: Iterable[Claim], since: Mapping[str, float]) -> list[Claim]:
    """Return the claims of namespaces that are there, without those of others of their names.

    *Example:* ``red`` was deleted and made again for another team at 12:00. That team is told
    nothing of what ``red`` used before.
    """
    return [one for one in claims if one.start >= since.get(one.namespace, 0.0)]


def prices_for(
    known: Prices, nodes: Sequence[NodeSpan], claims: Sequence[Claim], namespace: str
) -> list[Price]:
    """Return the prices that a namespace meets: of nodes that its pods were on, and of hardware."""
    names = {one.node for one in claims if one.namespace == namespace}
    used = [one for one in nodes if one.name in names]
    return [
        one.price
        for one in known.entries
        if all(map(_says_hardware, one.price.selector)) or any(map(one.fits, used))
    ]


def _says_hardware(label: str) -> bool:
    prefix, slash, _ = label.partition("/")
    return bool(slash) and any(prefix == one or prefix.endswith(f".{one}") for one in HARDWARE)


def budgets_for(
    standings: Iterable[Standing], teams: Iterable[Team], namespace: str
) -> Iterator[Standing]:
    """Yield the budgets of a namespace, of its team, and of its team's queue."""
    own = {
        team.metadata.name
        for team in teams
        if namespace in (team.spec.namespaces or [team.metadata.name])
    }
    for one in standings:
        budget = one.budget
        if one.team in own or (
            not one.team and (budget.namespace == namespace or budget.queue in own)
        ):
            yield one
