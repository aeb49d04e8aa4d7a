"""The nodes as columns: what they offer, what is used, where they stand.

Arrays are laid out ``[column, row]``, so that one resource over all nodes is contiguous. A row is
reused after its node is gone. Consumers learn from the journal which rows changed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lockstep.api.topology import Tier
from lockstep.scheduler.core.model.node_info import NodeInfo
from lockstep.scheduler.core.model.topology import Tiers
from lockstep.scheduler.core.resources import device_columns
from lockstep.scheduler.core.resources.columns import (
    GPU_COLUMN,
    NIC_COLUMN,
    Columns,
    is_device,
    is_port,
)
from lockstep.scheduler.core.resources.device_allocation import Grant
from lockstep.scheduler.core.resources.device_columns import Taken, Takes
from lockstep.scheduler.core.resources.device_inventory import NO_DEVICES, Layout
from lockstep.scheduler.core.resources.selectors import LabelColumn, TaintSets, fields_and_labels
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray

MASKS = ("gpu_healthy", "gpu_used", "gpu_shared", "gpu_kept", "nic_used")
"""The arrays that have a set of devices a row."""
PER_ROW = ("live", "ready", "schedulable", "taints", *MASKS)
"""The arrays of the table that have one value a row."""
_AMOUNTS = ("allocatable", "used", "free", "held")
"""The arrays ``[column, row]``."""
_USE = ("used", "free", "held", "gpu_used", "gpu_shared", "gpu_kept", "nic_used")
"""The arrays that say what of the nodes is taken."""


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
        self.facts: list[NodeInfo | None] = [None] * capacity
        self._vacant = list(range(capacity - 1, -1, -1))
        width = len(columns)
        self.allocatable: IntArray = np.zeros((width, capacity), dtype=np.int64)
        self.used: IntArray = np.zeros((width, capacity), dtype=np.int64)
        self.free: IntArray = np.zeros((width, capacity), dtype=np.int64)
        self.held: IntArray = np.zeros((width, capacity), dtype=np.int64)
        """What is kept free for pods that are to come; no other pod may take it."""
        self.live: BoolArray = np.zeros(capacity, dtype=bool)
        self.ready: BoolArray = np.zeros(capacity, dtype=bool)
        self.schedulable: BoolArray = np.zeros(capacity, dtype=bool)
        self.taints: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.gpu_healthy: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.gpu_used: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.gpu_shared: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.gpu_kept: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.nic_used: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self.taint_sets = TaintSets()
        self.tiers = Tiers(capacity=capacity)
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

    def layout_of(self, name: str) -> Layout:
        """Return the devices of a node by its name; none where the node is not known."""
        row = self.rows.get(name)
        return self.layout(row) if row is not None else NO_DEVICES

    def free_devices(self, row: int) -> int:
        """Return the mask of a node's healthy devices that no pod holds, nor a share of them."""
        return self.layout(row).healthy & ~int(self.gpu_used[row] | self.gpu_shared[row])

    def free_nics(self, row: int) -> int:
        """Return the mask of a node's healthy NICs that no pod holds."""
        return self.layout(row).healthy_nics & ~int(self.nic_used[row])

    def put(self, facts: NodeInfo) -> bool:
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
        self._open_more(facts.layout)
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

    def _open_more(self, layout: Layout) -> None:
        """Make columns for devices beyond those of the other nodes, where there are any at all."""
        if self.columns.inside:
            self.columns.open_inside(*device_columns.widths([layout]))
        elif self.columns.cards:
            self.columns.open_cards(layout.width)

    def remove(self, name: str) -> bool:
        """Take a node out; return whether it was there."""
        row = self.rows.pop(name, None)
        if row is None:
            return False
        self._rank = None
        self.facts[row] = None
        self.live[row] = self.ready[row] = self.schedulable[row] = False
        self.taints[row] = 0
        for field in MASKS:
            getattr(self, field)[row] = 0
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

        What is free is counted again with the *last* of several changes alone; devices may be it.
        """
        self.used[columns, row] += amounts * times
        if last:
            self.refresh(row)

    def vacate(self, row: int) -> None:
        """Use nothing of a node, before its pods are counted afresh."""
        self.used[:, row] = 0
        self.refresh(row)

    def hold_devices(self, row: int, taken: Taken) -> None:
        """State which devices of a node are held whole, and of which shares are held."""
        self.gpu_used[row], self.gpu_shared[row] = taken.gpus, taken.shared
        self.nic_used[row] = taken.nics
        if self.columns.cards:
            uses = device_columns.used(self.columns, self.layout(row), taken)
            device_columns.put(self.used, row, uses)
        self.refresh(row)

    def open_for(self, takes: Takes) -> bool:
        """Give single devices the columns that a pod goes by; return whether to count them anew."""
        if takes.goes_by_connections and not self.columns.inside:
            self.columns.open_inside(*device_columns.widths(self._layouts()))
            self.widen()
        elif takes.share is not None and not self.columns.cards:
            self.open_cards()
        share = takes.share
        new = bool(share and not share.plain and self.columns.open_marks(offline=share.offline))
        self.widen()
        return new

    def open_cards(self) -> None:
        """Give single GPUs their columns."""
        self.columns.open_cards(device_columns.widths(self._layouts())[0])
        self.widen()

    def _layouts(self) -> Iterator[Layout]:
        return (facts.layout for facts in self.facts if facts)

    def hold(self, row: int, columns: IntArray, amounts: IntArray, times: int = 1) -> None:
        """Keep more (or, with a negative *times*, less) of a node free for pods to come."""
        self._holds = True
        self.held[columns, row] += amounts * times
        self.refresh(row)

    def hold_grant(self, row: int, grant: Grant, takes: Takes, times: int = 1) -> None:
        """Keep more (or less) of single devices free for a pod to come."""
        if takes.share is None:
            others = int(self.gpu_kept[row]) & ~grant.gpus
            self.gpu_kept[row] = others | grant.gpus if times > 0 else others
        amounts = device_columns.held(self.columns, self.layout(row), grant, takes)
        for column, amount in amounts.items():
            self.held[column, row] += amount * times
        self.refresh(row)

    def _begun(self, rows: int | IntArray) -> BoolArray:
        there = self.allocatable[:, rows] - self.used[:, rows]
        return device_columns.begun(self.columns, there, self.held[:, rows])

    def release(self) -> None:
        """Keep nothing free any more."""
        rows = np.flatnonzero(self.held.any(axis=0))
        self.held[:] = self.gpu_kept[:] = 0
        for row in rows:
            self.refresh(int(row))

    def emptied(self, rows: IntArray) -> IntArray:
        """Return what some nodes would have free without any pod; ill devices stay ill."""
        found = self.free[:, rows] + self.used[:, rows] + self.held[:, rows]
        # A card of which shares are held is not free, and yet no pod uses the whole of it.
        found[self.columns.card_ids["whole"]] += (begun := self._begun(rows))
        found[GPU_COLUMN] += np.bitwise_count(self.gpu_shared[rows]) + begun.sum(axis=0)
        found[GPU_COLUMN] = np.minimum(found[GPU_COLUMN], self.allocatable[GPU_COLUMN, rows])
        return found

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
        new = [column for column in range(width, wanted) if is_device(self.columns.names[column])]
        for row in self.rows.values() if new else ():
            taken = Taken(gpus=int(self.gpu_used[row]), nics=int(self.nic_used[row]))
            uses = device_columns.used(self.columns, self.layout(row), taken)
            self._offer_devices(row)
            device_columns.put(self.used, row, {column: uses[column] for column in new})
            self.refresh(row)

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
        self._offer_devices(row)
        self.refresh(row)

    def _offer_devices(self, row: int) -> None:
        if self.columns.cards:
            offers = device_columns.offered(self.columns, self.layout(row))
            device_columns.put(self.allocatable, row, offers)

    def refresh(self, row: int) -> None:
        """Count again what is free on a node."""
        free = self.allocatable[:, row] - self.used[:, row]
        # A count alone would promise devices that are ill or held by index.
        if self.layout(row).cards:
            free[GPU_COLUMN] = min(free[GPU_COLUMN], self.free_devices(row).bit_count())
        if self.nic_used[row]:
            free[NIC_COLUMN] = min(free[NIC_COLUMN], self.free_nics(row).bit_count())
        if self._holds:
            free -= self.held[:, row]
            if self.columns.cards and self.held[:, row].any():
                free[self.columns.card_ids["whole"]] -= (begun := self._begun(row))
                free[GPU_COLUMN] -= begun.sum()
        self.free[:, row] = free
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
