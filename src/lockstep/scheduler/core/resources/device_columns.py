"""Single devices as columns of the node table: what nodes offer of each, what is taken of it.

All work on copies of the columns (placing, preempting, explaining, what-if) thereby sees
devices too, and how they are connected: that is a column with the number of the node's layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from lockstep.scheduler.core.resources.columns import (
    CARD_KINDS,
    SOCKET_KINDS,
    UNMARKED,
    WHOLE_CARD,
    Columns,
)
from lockstep.scheduler.core.resources.device_allocation import NO_SOCKET, Grant
from lockstep.scheduler.core.resources.device_inventory import Layout
from lockstep.scheduler.core.resources.gpu_shares import GpuShare
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray
from lockstep.scheduler.core.util.bitmask import indices_of, mask_of

UNCOUNTED = 1 << 60
"""Stands for the memory of a NUMA node that does not state it."""


class Takes(Protocol):
    """What a pod takes, as far as single devices go by it."""

    share: GpuShare | None
    goes_by_connections: bool

    @property
    def cpu(self) -> int:
        """Return its thousandths of CPUs."""

    @property
    def memory(self) -> int:
        """Return its bytes."""


@dataclass(slots=True)
class Taken:
    """What of the devices of one node is held."""

    gpus: int = 0
    """The mask of those that are held whole."""
    shares: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By card the compute and memory that are held of it as shares."""
    marks: dict[tuple[str, int], int] = field(default_factory=dict)
    """By mark and card how many shares there have it."""
    nics: int = 0
    sockets: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By NUMA node the CPUs and memory of pods that must have them from it."""

    def add(self, grant: Grant, takes: Takes) -> None:
        """Count what one pod holds."""
        share = takes.share
        if share is None:
            self.gpus |= grant.gpus
        else:
            for card in indices_of(grant.gpus):
                held = self.shares.get(card, (0, 0))
                self.shares[card] = held[0] + share.compute, held[1] + share.memory
                for mark in share.marks:
                    self.marks[mark, card] = self.marks.get((mark, card), 0) + 1
        self.nics |= grant.nics
        if grant.socket != NO_SOCKET:
            used = self.sockets.get(grant.socket, (0, 0))
            self.sockets[grant.socket] = used[0] + takes.cpu, used[1] + takes.memory

    @property
    def shared(self) -> int:
        """Return the mask of the GPUs of which shares are held."""
        return mask_of(self.shares)


def widths(layouts: Iterable[Layout]) -> tuple[int, int, int]:
    """Return how many GPUs, NICs and NUMA nodes there are columns needed for, at least one each."""
    known = list(layouts)
    return (
        max((layout.width for layout in known), default=1) or 1,
        max((layout.nic_width for layout in known), default=1) or 1,
        max((len(layout.sockets) for layout in known), default=1) or 1,
    )


def offered(columns: Columns, layout: Layout) -> Mapping[int, int]:
    """Return by column what a node with such a layout offers of single devices."""
    return _offered(columns, len(columns), layout)


@lru_cache(maxsize=1024)
def _offered(columns: Columns, _width: int, layout: Layout) -> Mapping[int, int]:
    """Return what nodes offer while there are so many columns; most have one of few layouts."""
    found = dict.fromkeys(columns.device_ids, 0)
    cards, nics = columns.card_ids, columns.nic_ids
    for card in layout.cards:
        if card.number < columns.cards and layout.healthy >> card.number & 1:
            amounts = (1, WHOLE_CARD, card.memory)
            for kind, amount in zip(CARD_KINDS, amounts, strict=True):
                found[cards[kind][card.number]] = amount
            found |= {ids[card.number]: UNMARKED for ids in columns.mark_ids.values() if ids}
    for nic in layout.nics:
        if nic.number < len(nics) and layout.healthy_nics >> nic.number & 1:
            found[nics[nic.number]] = 1
    for place, socket in enumerate(layout.sockets[: len(columns.socket_ids["cpu"])]):
        found[columns.socket_ids["cpu"][place]] = socket.cpu
        found[columns.socket_ids["memory"][place]] = socket.memory or UNCOUNTED
    if columns.layout_column is not None:
        found[columns.layout_column] = columns.layout_number(layout)
    return MappingProxyType(found)


def used(columns: Columns, layout: Layout, taken: Taken) -> dict[int, int]:
    """Return by column what is taken of a node's single devices."""
    whole = offered(columns, layout)
    found = dict.fromkeys(whole, 0)
    ids = [columns.card_ids[kind] for kind in CARD_KINDS]
    for card, amounts in taken.shares.items():
        if card < columns.cards:
            found |= {kind[card]: part for kind, part in zip(ids, (1, *amounts), strict=True)}
    for (mark, card), count in taken.marks.items() if columns.marked else ():
        if card < columns.cards:
            found[columns.mark_ids[mark][card]] = count
    for card in indices_of(taken.gpus):
        if card < columns.cards:
            found |= {kind[card]: whole[kind[card]] for kind in ids}
    for nic in indices_of(taken.nics):
        if nic < len(columns.nic_ids):
            found[columns.nic_ids[nic]] = 1
    for place, socket in enumerate(layout.sockets[: len(columns.socket_ids["cpu"])]):
        parts = taken.sockets.get(socket.number, (0, 0))
        for kind, amount in zip(SOCKET_KINDS, parts, strict=True):
            found[columns.socket_ids[kind][place]] = amount
    return found


def held(columns: Columns, layout: Layout, grant: Grant, takes: Takes) -> dict[int, int]:
    """Return by column what one pod holds of a node's single devices.

    A card with a share counts as touched by no pod alone: others may have shares of it too.
    """
    if not grant or not columns.cards:
        return {}
    taken = Taken()
    taken.add(grant, takes)
    found = used(columns, layout, taken)
    if takes.share is not None:
        found |= dict.fromkeys(columns.card_ids["whole"], 0)
    return found


def begun(columns: Columns, left: IntArray, kept: IntArray) -> BoolArray:
    """Return by card, and by node where there are several, whether all of it is *left* by those
    that are there, but not the whole may be had: shares of it are *kept* for another.
    """
    whole, compute, memory = (list(columns.card_ids[kind]) for kind in CARD_KINDS)
    shared = (kept[compute] > 0) | (kept[memory] > 0)
    found: BoolArray = (left[whole] > kept[whole]) & shared
    return found


def put(target: IntArray, row: int, amounts: Mapping[int, int]) -> None:
    """Write amounts by column into one row."""
    if amounts:
        target[list(amounts), row] = list(amounts.values())
