"""NodePolicies: which tier of a policy each node is in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lockstep.api.core import NodeSelectorRequirement
from lockstep.api.meta import LabelSelector
from lockstep.api.node_policy import NodePolicy, NodeTier
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.resources.selectors import matches
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray


class NodePolicies:
    """All policies. Change them through the methods."""

    def __init__(self) -> None:
        self._known: dict[str, NodePolicy] = {}
        self._tiers: dict[str, tuple[int, IntArray]] = {}

    def set(self, policy: NodePolicy) -> None:
        """Take in a policy, new or changed."""
        self._known[policy.metadata.name] = policy
        self._tiers.clear()

    def remove(self, name: str) -> None:
        """Forget a policy."""
        self._known.pop(name, None)
        self._tiers.clear()

    def names(self) -> list[str]:
        """Return what the policies are called."""
        return sorted(self._known)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def chosen(self, named: str, queue: str) -> str:
        """Return the policy of a gang that names one or none, empty where it has none.

        A queue that several policies claim follows the first of them by name.
        """
        if named:
            return named if named in self._known else ""
        claims = (name for name in sorted(self._known) if queue in self._known[name].spec.queues)
        return next(claims, "")

    def tiers(self, name: str, table: NodeTable) -> IntArray | None:
        """Return by row the number of the policy's tier, 0 for the one to be filled first.

        None where there is no such policy.
        """
        policy = self._known.get(name)
        if policy is None:
            return None
        found = self._tiers.get(name)
        if found is None or found[0] != table.version or len(found[1]) != table.capacity:
            tiers: IntArray = np.full(table.capacity, len(policy.spec.tiers), dtype=np.int64)
            for number, tier in reversed(list(enumerate(policy.spec.tiers))):
                tiers[_matching(table, tier.selector)] = number
            found = self._tiers[name] = table.version, tiers
        return found[1]

    def filled(self, name: str, table: NodeTable) -> Iterator[tuple[NodeTier, int]]:
        """Yield the tiers of a policy with how many nodes are in each, the first one first.

        Raises:
            KeyError: when there is no such policy.
        """
        tiers = self._known[name].spec.tiers
        numbers = self.tiers(name, table)
        for number, tier in enumerate(tiers):
            yield tier, int(np.count_nonzero(table.live & (numbers == number)))


def _matching(table: NodeTable, selector: LabelSelector) -> BoolArray:
    passes = table.live.copy()
    for key, value in selector.match_labels.items():
        passes &= table.label(key).any_of([value])
    for one in selector.match_expressions:
        requirement = NodeSelectorRequirement(key=one.key, operator=one.operator, values=one.values)
        passes &= matches(table.label(one.key), requirement)
    return passes
