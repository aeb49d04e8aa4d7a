"""The exact way to pack: which member counts can be attained on the first nodes, then on more.

The set of all attainable counts is built up node by node, keeping only those not dominated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lockstep.scheduler.core.packing.node_mixes import NodeMixes
from lockstep.scheduler.core.packing.packing import DomainNodes, Item, Packing, Quota
from lockstep.scheduler.core.packing.quota_headroom import Division, parts_of
from lockstep.scheduler.core.util.array_types import IntArray
from lockstep.scheduler.core.util.pareto import FRONT_LIMIT, undominated

WORK_LIMIT = 4_000_000
"""Combinations looked at by one exact search before it gives up."""


class ExactPacking:
    """The exact search: which member counts can be attained on the first nodes, then on more.

    Where limits count by node, members of an item on nodes of each class are counted apart.
    """

    def __init__(self, items: Sequence[Item], quotas: Sequence[Quota], ground: DomainNodes) -> None:
        self._items = items
        self._quotas = quotas
        self._ground = ground
        asked = [(item.group, item.available) for item in items]
        self._parts = parts_of(asked, ground.eligible, ground.headroom)
        self._most = np.array([part.most for part in self._parts], dtype=np.int64)
        split = [replace(items[part.item], available=part.most) for part in self._parts]
        self._fronts = NodeMixes(split, ground.free(), [part.open_to for part in self._parts])
        self._division = Division(
            self._parts,
            [item.available for item in items],
            [quota.need for quota in quotas],
            [one.amount for one in ground.headroom],
        )

    def search(self) -> Packing:
        """Return the fullest packing; it satisfies whenever any does and the limits were kept."""
        if not self._parts:
            return Packing(np.zeros((len(self._items), len(self._ground.rows)), dtype=np.int64))
        reached: IntArray = np.zeros((1, len(self._parts)), dtype=np.int64)
        steps: list[tuple[int, IntArray, IntArray]] = []  # node, previous state, own counts
        work, exact = 0, True
        found = None
        for node in range(len(self._ground.rows)):
            front = self._fronts.of(node)
            if front is None:
                exact = False
                continue
            if not front.any():
                continue
            work += len(reached) * len(front)
            if work > WORK_LIMIT or len(reached) > FRONT_LIMIT:
                exact = False
                break
            sums = np.minimum(reached[:, None] + front[None], self._most).reshape(
                -1, len(self._parts)
            )
            kept = undominated(sums)
            reached = sums[kept]
            steps.append((node, kept // len(front), front[kept % len(front)]))
            found = self._enough(reached)
            if found is not None:
                break
        exact = exact and self._fronts.exact and self._division.exact
        return Packing(self._counts(steps, reached, found), exact)

    def _short(self, reached: IntArray) -> IntArray:
        """Return by state how many members the groups are short of, limits left aside."""
        short = np.zeros(len(reached), dtype=np.int64)
        for group, quota in enumerate(self._quotas):
            held = np.zeros(len(reached), dtype=np.int64)
            for number, item in enumerate(self._items):
                if item.group == group:
                    own = [p for p, part in enumerate(self._parts) if part.item == number]
                    held += np.minimum(reached[:, own].sum(axis=1), item.available)
            short += np.maximum(quota.need - held, 0)
        return short

    def _enough(self, reached: IntArray) -> tuple[int, list[int]] | None:
        """Return a state that holds what is needed, and how many members of each part to take."""
        enough = np.flatnonzero(self._short(reached) == 0)
        for state in enough[np.argsort(-reached[enough].sum(axis=1), kind="stable")]:
            most = reached[state].tolist()
            taken = self._division.within(most) if self._ground.headroom else most
            if taken is not None:
                return int(state), taken
        return None

    def _counts(
        self,
        steps: list[tuple[int, IntArray, IntArray]],
        reached: IntArray,
        found: tuple[int, list[int]] | None,
    ) -> IntArray:
        """Return by item and node how many members the state found has, else the fullest one."""
        counts = np.zeros((len(self._items), len(self._ground.rows)), dtype=np.int64)
        if found is None:
            if self._ground.headroom:
                return counts
            order = np.lexsort((-reached.sum(axis=1), self._short(reached)))
            found = int(order[0]), self._most.tolist()
        state, most = found
        own_counts = np.zeros((len(self._parts), counts.shape[1]), dtype=np.int64)
        for node, previous, own in reversed(steps):
            own_counts[:, node] = own[state]
            state = int(previous[state])
        # States are clipped at what is available; so is what they are made of.
        for part, limit, taken in zip(self._parts, most, own_counts, strict=True):
            counts[part.item] += np.clip(limit - (np.cumsum(taken) - taken), 0, taken)
        return counts
