"""The nodes as columns: what they offer, what is used, where they stand.

Arrays are laid out ``[column, row]``, so that one resource over all nodes is contiguous. A row is
reused after its node is gone. Consumers learn from the journal which rows changed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lockstep.api.core import Node
from lockstep.api.names import DEVICES_ANNOTATION, GPU
from lockstep.api.topology import Tier
from lockstep.scheduler.core import devices
from lockstep.scheduler.core.devices import NO_DEVICES, Layout
from lockstep.scheduler.core.labels import (
    BoolArray,
    LabelColumn,
    TaintSet,
    TaintSets,
    fields_and_labels,
    taint_set,
)
from lockstep.scheduler.core.policies import NodePolicies
from lockstep.scheduler.core.resources import (
    CARD_KINDS,
    GPU_COLUMN,
    Columns,
    amounts,
    is_card,
    is_port,
)
from lockstep.scheduler.core.shares import Held, Share
from lockstep.scheduler.core.topology import Tiers

IntArray = NDArray[np.int64]
PER_ROW = ("live", "ready", "schedulable", "taints", "gpu_healthy", "gpu_used", "gpu_shared")
"""The arrays of the table that have one value a row."""
WHOLE_CARD = 100
"""Hundredths of compute that one GPU has."""
_AMOUNTS = ("allocatable", "used", "free", "held")
"""The arrays ``[column, row]``."""
_USE = ("used", "free", "held", "gpu_used", "gpu_shared")
"""The arrays that say what of the nodes is taken."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What of a Node object the scheduler goes by."""

    name: str
    labels: Mapping[str, str]
    taints: TaintSet
    schedulable: bool
    ready: bool
    allocatable: Mapping[str, int]
    layout: Layout

    @classmethod
    def of(cls, node: Node) -> NodeFacts:
        """Read them from the object."""
        allocatable = amounts(node.status.allocatable or node.status.capacity)
        return cls(
            name=node.metadata.name,
            labels=node.metadata.labels,
            taints=taint_set(node.spec.taints),
            schedulable=not node.spec.unschedulable,
            # A node that states nothing is taken as ready: not every kubelet's stand-in reports.
            ready=all(c.status == "True" for c in node.status.conditions if c.type == "Ready"),
            allocatable=allocatable,
            layout=devices.layout_of(
                node.metadata.annotations.get(DEVICES_ANNOTATION, ""), allocatable.get(GPU, 0)
            ),
        )


class Journal:
    """The rows that changed, in order, so that each consumer catches up from where it was."""

    LIMIT = 1 << 16

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._base = 0

    def note(self, row: int) -> None:
        """Record a change of one row."""
        self._rows.append(row)
        if len(self._rows) > self.LIMIT:
            drop = self.LIMIT // 2
            del self._rows[:drop]
            self._base += drop

    @property
    def mark(self) -> int:
        """Return the present end, to be given to ``since`` later."""
        return self._base + len(self._rows)

    def since(self, mark: int) -> list[int] | None:
        """Return the rows noted after *mark*; None when that is no longer known."""
        return None if mark < self._base else self._rows[mark - self._base :]


@lru_cache(maxsize=16384)
def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key under which ``node-2`` comes before ``node-10``."""
    head = name.rstrip("0123456789")
    # Most names are one of many that only differ in the number at their end.
    return _parts(head) if head == name else (*_parts(head), (0, int(name[len(head) :])))


@lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[tuple[int, int | str], ...]:
    parts = re.split(r"(\d+)", text)
    return tuple((0, int(p)) if p.isdigit() else (1, p) for p in parts if p)


class NodeTable:
    """All nodes. Change it through its methods, read its arrays freely."""

    def __init__(self, columns: Columns, capacity: int = 64) -> None:
        self.columns = columns
        self.capacity = capacity
        self.rows: dict[str, int] = {}
        self.facts: list[NodeFacts | None] = [None] * capacity
        self._vacant = list(range(capacity - 1, -1, -1))
        width = len(columns)
        self.allocatable: IntArray = np.zeros((width, capacity), dtype=np.int64)
        self.used: IntArray = np.zeros((width, capacity), dtype=np.int64)
        self.free: IntArray = np.zeros((width, capacity), dtype=np.int64)
        self.held: IntArray = np.zeros((width, capacity), dtype=np.int64)
        """What is kept free for somebody who is to come; nobody else may take it."""
        self.live: BoolArray = np.zeros(capacity, dtype=bool)
        self.ready: BoolArray = np.zeros(capacity, dtype=bool)
        self.schedulable: BoolArray = np.zeros(capacity, dtype=bool)
        self.taints: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.gpu_healthy: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.gpu_used: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.gpu_shared: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.taint_sets = TaintSets()
        self.tiers = Tiers(capacity=capacity)
        self.policies = NodePolicies()
        self.journal = Journal()
        self.version = 0
        """Moves with every change of what nodes are, not with what is used on them."""
        self._labels: dict[str, LabelColumn] = {}
        self._rank: IntArray | None = None
        self._holds = False

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, row: int) -> str:
        """Return the name of the node in a row.

        Raises:
            KeyError: when the row is vacant.
        """
        facts = self.facts[row]
        if facts is None:
            raise KeyError(row)
        return facts.name

    def layout(self, row: int) -> Layout:
        """Return the GPUs of the node in a row."""
        facts = self.facts[row]
        return facts.layout if facts else NO_DEVICES

    def free_devices(self, row: int) -> int:
        """Return the mask of a node's healthy devices that nobody holds, nor a share of them."""
        return int(self.gpu_healthy[row]) & ~int(self.gpu_used[row] | self.gpu_shared[row])

    def put(self, facts: NodeFacts) -> bool:
        """Add or change a node; return whether anything about it is new."""
        row = self.rows.get(facts.name)
        if row is not None and self.facts[row] == facts:
            return False
        if row is None:
            if not self._vacant:
                self._grow()
            row = self.rows[facts.name] = self._vacant.pop()
            self._rank = None
        for name in facts.allocatable:
            self.columns.id(name)
        if 0 < self.columns.cards < facts.layout.width:
            self.columns.open_cards(facts.layout.width)
        self.widen()
        self.facts[row] = facts
        self.live[row], self.ready[row] = True, facts.ready
        self.schedulable[row] = facts.schedulable
        self.taints[row] = self.taint_sets.id(facts.taints)
        self.gpu_healthy[row] = facts.layout.healthy
        self._offer(row, facts.allocatable)
        labels = fields_and_labels(facts.name, facts.labels)
        for key, column in self._labels.items():
            column.set(row, labels.get(key))
        self.tiers.place(row, facts.name, facts.labels)
        self._touch(row)
        self._compact()
        return True

    def remove(self, name: str) -> bool:
        """Take a node out; return whether it was there."""
        row = self.rows.pop(name, None)
        if row is None:
            return False
        self._rank = None
        self.facts[row] = None
        self.live[row] = self.ready[row] = self.schedulable[row] = False
        self.taints[row] = 0
        self.gpu_healthy[row] = self.gpu_used[row] = self.gpu_shared[row] = 0
        for field in _AMOUNTS:
            getattr(self, field)[:, row] = 0
        for column in self._labels.values():
            column.set(row, None)
        self.tiers.clear(row)
        self._vacant.append(row)
        self._touch(row)
        return True

    def set_tiers(self, tiers: Sequence[Tier] | None) -> None:
        """Put another topology in place of the present one; None is the default."""
        self.tiers = Tiers(tiers, self.capacity)
        for row in self.rows.values():
            facts = self.facts[row]
            if facts:
                self.tiers.place(row, facts.name, facts.labels)
        self.version += 1

    def label(self, key: str) -> LabelColumn:
        """Return the column of one label; it is filled when it is first asked for."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self.capacity)
            for row in self.rows.values():
                facts = self.facts[row]
                if facts:
                    column.set(row, fields_and_labels(facts.name, facts.labels).get(key))
        return column

    def charge(
        self, row: int, columns: IntArray, amounts: IntArray, times: int = 1, *, last: bool = True
    ) -> None:
        """Use more (or, with a negative *times*, less) of a node.

        What is free is counted again with the *last* of several changes alone; the devices that
        are held may be the last.
        """
        self.used[columns, row] += amounts * times
        if last:
            self._refresh(row)

    def vacate(self, row: int) -> None:
        """Use nothing of a node, before its pods are counted afresh."""
        self.used[:, row] = 0
        self._refresh(row)

    def hold_devices(self, row: int, mask: int, shares: Held | None = None) -> None:
        """State which devices of a node are held whole, and of which shares are held."""
        self.gpu_used[row] = mask
        self.gpu_shared[row] = devices.mask_of(shares or ())
        self._use_cards(row, shares or {})
        self._refresh(row)

    def open_cards(self) -> None:
        """Give single GPUs their columns, as many as any node has."""
        layouts = (facts.layout for facts in self.facts if facts)
        self.columns.open_cards(max(1, *(layout.width for layout in layouts), 1))
        self.widen()

    def _use_cards(self, row: int, shares: Held, *, first: int = 0) -> None:
        ids = self.columns.card_ids
        for card in range(first, self.columns.cards):
            columns = [ids[kind][card] for kind in CARD_KINDS]
            if int(self.gpu_used[row]) >> card & 1:
                self.used[columns, row] = self.allocatable[columns, row]
            else:
                held = shares.get(card)
                self.used[columns, row] = (held is not None, *(held or (0, 0)))

    def hold(self, row: int, columns: IntArray, amounts: IntArray, times: int = 1) -> None:
        """Keep more (or, with a negative *times*, less) of a node free for somebody to come."""
        self._holds = True
        self.held[columns, row] += amounts * times
        self._refresh(row)

    def hold_cards(self, row: int, mask: int, share: Share | None, times: int = 1) -> None:
        """Keep more (or less) of single GPUs free for somebody to come: them whole, or a share."""
        ids = self.columns.card_ids
        for card in devices.indices_of(mask) if self.columns.cards else ():
            columns = [ids[kind][card] for kind in CARD_KINDS]
            if share is None:
                self.held[columns, row] += self.allocatable[columns, row] * times
            else:
                self.held[columns, row] += np.array((0, share.compute, share.memory)) * times
        self._refresh(row)

    def release(self) -> None:
        """Keep nothing free for anybody."""
        rows = np.flatnonzero(self.held.any(axis=0))
        self.held[:] = 0
        for row in rows:
            self._refresh(int(row))

    def fork(self) -> NodeTable:
        """Return a table of the same nodes whose use may be changed without this one's."""
        self.widen()
        other = copy.copy(self)
        for field in _USE:
            setattr(other, field, getattr(self, field).copy())
        other.journal = Journal()
        return other

    def widen(self) -> None:
        """Give every known resource its column."""
        width, wanted = len(self.free), len(self.columns)
        if wanted == width:
            return
        for field in _AMOUNTS:
            old = getattr(self, field)
            more = np.zeros((wanted - width, self.capacity), dtype=np.int64)
            setattr(self, field, np.concatenate([old, more]))
        for column in range(width, wanted):
            if is_port(self.columns.names[column]):
                self.allocatable[column, self.live] = 1
                self.free[column, self.live] = 1
        new = sum(is_card(name) for name in self.columns.names[width:]) // len(CARD_KINDS)
        for row in self.rows.values() if new else ():
            self._offer_cards(row)
            self._use_cards(row, {}, first=self.columns.cards - new)
            self._refresh(row)

    def rank(self) -> IntArray:
        """Return each row's place in the natural order of node names, the last tie-breaker."""
        if self._rank is None:
            self._rank = np.full(self.capacity, self.capacity, dtype=np.int64)
            for place, name in enumerate(sorted(self.rows, key=natural)):
                self._rank[self.rows[name]] = place
        return self._rank

    def _offer(self, row: int, allocatable: Mapping[str, int]) -> None:
        self.allocatable[:, row] = 0
        for name, value in allocatable.items():
            self.allocatable[self.columns.id(name), row] = value
        for column, name in enumerate(self.columns.names):
            if is_port(name):
                self.allocatable[column, row] = 1
        self._offer_cards(row)
        self._refresh(row)

    def _offer_cards(self, row: int) -> None:
        ids = self.columns.card_ids
        for card in self.layout(row).cards:
            if card.number < self.columns.cards and self.gpu_healthy[row] >> card.number & 1:
                columns = [ids[kind][card.number] for kind in CARD_KINDS]
                self.allocatable[columns, row] = (1, WHOLE_CARD, card.memory)

    def _refresh(self, row: int) -> None:
        self.free[:, row] = self.allocatable[:, row] - self.used[:, row]
        # A count alone would promise devices that are ill or held by index.
        if self.layout(row).cards:
            whole = self.free_devices(row).bit_count()
            self.free[GPU_COLUMN, row] = min(self.free[GPU_COLUMN, row], whole)
        if self._holds:
            self.free[:, row] -= self.held[:, row]
        self.journal.note(row)

    def _compact(self) -> None:
        """Drop the names of nodes long gone, of which there are many where nodes come and go."""
        most = 4 * self.capacity + 64
        if any(len(tier) > most for tier in self.tiers.indices):
            self.set_tiers([index.tier for index in self.tiers.indices])
        for key in [key for key, column in self._labels.items() if len(column.values) > most]:
            del self._labels[key]

    def _touch(self, row: int) -> None:
        self.version += 1
        self.journal.note(row)

    def _grow(self) -> None:
        old, new = self.capacity, self.capacity * 2
        self._rank = None
        for field in _AMOUNTS:
            setattr(self, field, np.pad(getattr(self, field), ((0, 0), (0, new - old))))
        for field in PER_ROW:
            setattr(self, field, np.pad(getattr(self, field), (0, new - old)))
        self.facts += [None] * (new - old)
        for column in self._labels.values():
            column.grow(new)
        self.tiers.grow(new)
        self._vacant = list(range(new - 1, old - 1, -1))
        self.capacity = new
