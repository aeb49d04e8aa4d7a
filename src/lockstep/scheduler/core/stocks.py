"""How many pods with aligned devices each node holds, read off the columns.

Nodes with the same devices free are alike, and there are few kinds of them: each kind is worked
out once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lockstep.scheduler.core.alignment import PLENTY, Ask, Stock, capacity
from lockstep.scheduler.core.device_columns import Takes
from lockstep.scheduler.core.grants import NO_SOCKET, Grant
from lockstep.scheduler.core.masks import indices_of
from lockstep.scheduler.core.resources import GPU_COLUMN, SOCKET_KINDS, Columns
from lockstep.scheduler.core.shares import room_on_cards

IntArray = NDArray[np.int64]
NUMBERS = 1 << 62
"""Numbers of kinds of nodes stay below it."""


class Asks(Takes, Protocol):
    """What a pod takes, and what it asks of how devices are connected."""

    table: Columns

    def ask(self, relations: frozenset[str]) -> Ask:
        """Return what it takes of devices, with such relations between them."""


def aligned_fit(free: IntArray, shape: Asks, relations: frozenset[str], fit: IntArray) -> IntArray:
    """Return how many pods fit each node with such relations; at most *fit* do without."""
    found = fit.copy()
    some = np.flatnonzero(fit > 0)
    if not len(some):
        return found
    ask = shape.ask(relations)
    vectors = _vectors(free[:, some], shape, ask, fit[some])
    first, kind = _kinds(vectors)
    counts = [capacity(stock, ask) for stock in _stocks(vectors[:, first], shape.table, ask)]
    found[some] = np.minimum(fit[some], np.array(counts, dtype=np.int64)[kind])
    return found


def stock_of(free: IntArray, shape: Asks, ask: Ask) -> Stock:
    """Return what one node (a column of *free*) has left for pods of a shape."""
    vectors = _vectors(free[:, None], shape, ask, np.array([PLENTY]))
    return next(_stocks(vectors, shape.table, ask))


def _vectors(free: IntArray, shape: Asks, ask: Ask, fit: IntArray) -> IntArray:
    """Return what tells kinds of nodes apart: layout, rooms by card, NICs, quotas by socket."""
    columns = shape.table
    rows = [free[columns.layout_column][None]]
    rooms = np.zeros((columns.cards, free.shape[1]), dtype=np.int64)
    if shape.share is not None:
        rooms = np.minimum(room_on_cards(free, shape.share, columns), fit)
    elif ask.cards:
        rooms = (free[columns.card_ids["whole"]] > 0).astype(np.int64)
    begun = np.zeros((1, free.shape[1]), dtype=np.int64)
    if shape.share is not None:
        begun = _bits(free[columns.card_ids["whole"]] <= 0)[None]
    rows += [begun, rooms, (free[columns.nic_ids] > 0).astype(np.int64) * (ask.nics > 0)]
    if "numa" in ask.relations:
        rows.append(np.minimum(_quotas(free, shape), fit))
    return np.concatenate(rows)


def _quotas(free: IntArray, shape: Asks) -> IntArray:
    """Return by NUMA node and node how many such pods the CPUs and the memory there hold."""
    columns = shape.table
    ids = columns.socket_ids
    quotas: IntArray = np.full((len(ids["cpu"]), free.shape[1]), PLENTY, dtype=np.int64)
    if shape.cpu:
        quotas = np.minimum(quotas, free[ids["cpu"]] // shape.cpu)
    if shape.memory:
        quotas = np.minimum(quotas, free[ids["memory"]] // shape.memory)
    return np.maximum(quotas, 0)


def _kinds(vectors: IntArray) -> tuple[IntArray, IntArray]:
    """Return a first node of each kind, and the kind of each node."""
    kind = np.zeros(vectors.shape[1], dtype=np.int64)
    size = 1  # the numbers of kinds are below it
    for row in vectors:
        vector, least, span = row, int(row.min()), int(np.ptp(row)) + 1
        if span == 1:
            continue
        if size > NUMBERS // span:
            kind, vector = (np.unique(one, return_inverse=True)[1] for one in (kind, vector))
            least, size, span = 0, int(kind.max()) + 1, int(vector.max()) + 1
        kind, size = kind * span + (vector - least), size * span
    _, first, kind = np.unique(kind, return_index=True, return_inverse=True)
    return first, kind


def _stocks(vectors: IntArray, columns: Columns, ask: Ask) -> Iterator[Stock]:
    width = columns.cards
    for vector in vectors.T.tolist():
        layout = columns.layouts[vector[0]]
        rooms, rest = vector[2 : 2 + width], vector[2 + width :]
        nics = sum(bit << i for i, bit in enumerate(rest[: len(columns.nic_ids)]))
        quotas = rest[len(columns.nic_ids) :] if "numa" in ask.relations else []
        yield Stock(
            layout,
            tuple(rooms[card.number] for card in layout.cards),
            nics,
            tuple(quotas[: len(layout.sockets)]),
            vector[1],
        )


def _bits(flags: NDArray[np.bool_]) -> IntArray:
    """Return by column the mask of the rows that are set."""
    places = np.arange(len(flags), dtype=np.uint64)[:, None]
    found: IntArray = (flags.astype(np.uint64) << places).sum(axis=0).astype(np.int64)
    return found


def take(free: IntArray, grant: Grant, shape: Asks) -> None:
    """Take the devices of one pod out of its node's columns (a column of *free*), in place.

    What the pod asks for by number is expected to be taken already.
    """
    columns = shape.table
    cards = columns.card_ids
    for card in indices_of(grant.gpus):
        if shape.share is None:
            for kind in cards:
                free[cards[kind][card]] = 0
            continue
        if free[cards["whole"][card]] > 0:  # nobody can have it whole any more
            free[[GPU_COLUMN, cards["whole"][card]]] -= 1
        free[cards["compute"][card]] -= shape.share.compute
        free[cards["memory"][card]] -= shape.share.memory
    for nic in indices_of(grant.nics):
        free[columns.nic_ids[nic]] = 0
    if grant.socket != NO_SOCKET:
        sockets = columns.layouts[int(free[columns.layout_column])].sockets
        place = [socket.number for socket in sockets].index(grant.socket)
        for kind, amount in zip(SOCKET_KINDS, (shape.cpu, shape.memory), strict=True):
            free[columns.socket_ids[kind][place]] -= amount
