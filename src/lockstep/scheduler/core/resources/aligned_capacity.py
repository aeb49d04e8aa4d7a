"""How many pods with aligned devices each node holds, read off the columns.

Nodes with the same devices free are alike, and there are few kinds of them: each kind is worked
out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from lockstep.scheduler.core.resources.alignment import PLENTY, DeviceAsk, Stock, capacity
from lockstep.scheduler.core.resources.columns import GPU_COLUMN, SOCKET_KINDS, Columns
from lockstep.scheduler.core.resources.device_allocation import NO_SOCKET, Grant
from lockstep.scheduler.core.resources.device_columns import Takes
from lockstep.scheduler.core.resources.gpu_shares import room_on_cards
from lockstep.scheduler.core.util.array_types import IntArray
from lockstep.scheduler.core.util.bitmask import indices_of, mask_of
from lockstep.scheduler.core.util.unique import numbered

NUMBERS = 1 << 62
"""Numbers of kinds of nodes stay below it."""


class AlignedRequests(Takes, Protocol):
    """What a pod takes, and what it asks of how devices are connected."""

    table: Columns

    def ask(self, relations: frozenset[str]) -> DeviceAsk:
        """Return what it takes of devices, with such relations between them."""


def aligned_fit(
    free: IntArray, shape: AlignedRequests, relations: frozenset[str], fit: IntArray
) -> IntArray:
    """Return how many pods fit each node with such relations; at most *fit* do without."""
    found = fit.copy()
    some = np.flatnonzero(fit > 0)
    if not len(some):
        return found
    ask = shape.ask(relations)
    most = fit[some]
    first, kind = _kinds(_features(free, some, shape, ask, most))
    stocks = (stock_of(free[:, some[i]], shape, ask, int(most[i])) for i in first)
    counts = [capacity(stock, ask) for stock in stocks]
    found[some] = np.minimum(most, np.array(counts, dtype=np.int64)[kind])
    return found


def stock_of(free: IntArray, shape: AlignedRequests, ask: DeviceAsk, most: int = PLENTY) -> Stock:
    """Return what one node (a column of *free*) has left for *most* pods of a shape."""
    columns, left = shape.table, free.tolist()
    layout = columns.layouts[left[columns.layout_column]]
    whole = columns.card_ids["whole"]
    begun, rooms, quotas = 0, [0] * len(whole), ()
    if shape.share is not None:
        rooms = np.minimum(room_on_cards(free[:, None], shape.share, columns)[:, 0], most).tolist()
        begun = mask_of(i for i, column in enumerate(whole) if left[column] <= 0)
    elif ask.cards:
        rooms = [int(left[column] > 0) for column in whole]
    if "numa" in ask.relations:
        here = np.minimum(_quotas(free[:, None], shape)[:, 0], most).tolist()
        quotas = tuple(here[: len(layout.sockets)])
    nics = (i for i, column in enumerate(columns.nic_ids) if left[column] > 0)
    return Stock(
        layout,
        tuple([rooms[card.number] for card in layout.cards]),
        mask_of(nics) if ask.nics else 0,
        quotas,
        begun,
    )


def _features(
    free: IntArray, some: IntArray, shape: AlignedRequests, ask: DeviceAsk, most: IntArray
) -> Iterator[IntArray]:
    """Yield what tells kinds of nodes apart: layout, GPUs or rooms on them, NICs, quotas."""
    columns = shape.table
    yield free[columns.layout_column][some]
    if shape.share is not None or ask.cards:
        yield _bits(free, columns.card_ids["whole"], some)
    if shape.share is not None:
        yield from np.minimum(room_on_cards(free, shape.share, columns)[:, some], most)
    if ask.nics:
        yield _bits(free, columns.nic_ids, some)
    if "numa" in ask.relations:
        yield from np.minimum(_quotas(free, shape)[:, some], most)


def _quotas(free: IntArray, shape: AlignedRequests) -> IntArray:
    """Return by NUMA node and node how many such pods the CPUs and the memory there hold."""
    columns = shape.table
    ids = columns.socket_ids
    quotas: IntArray = np.full((len(ids["cpu"]), free.shape[1]), PLENTY, dtype=np.int64)
    if shape.cpu:
        quotas = np.minimum(quotas, free[ids["cpu"]] // shape.cpu)
    if shape.memory:
        quotas = np.minimum(quotas, free[ids["memory"]] // shape.memory)
    return np.maximum(quotas, 0)


def _kinds(features: Iterable[IntArray]) -> tuple[IntArray, IntArray]:
    """Return a first node of each kind, and the kind of each node."""
    kind: IntArray = np.zeros(1, dtype=np.int64)
    size = 1  # the numbers of kinds are below it
    for feature in features:
        vector, least = feature, int(feature.min())
        span = int(feature.max()) - least + 1
        if size > NUMBERS // span:
            kind, vector = numbered(kind)[1], numbered(feature)[1]
            least, size, span = 0, int(kind.max()) + 1, int(vector.max()) + 1
        kind, size = kind * span + (vector - least), size * span
    return numbered(kind)


def _bits(free: IntArray, ids: Sequence[int], some: IntArray) -> IntArray:
    """Return by node the mask of the columns of which anything is left."""
    found: IntArray = np.zeros(len(some), dtype=np.int64)
    for i, column in enumerate(ids):
        found |= (free[column][some] > 0).astype(np.int64) << i
    return found


def take(free: IntArray, grant: Grant, shape: AlignedRequests) -> None:
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
        if free[cards["whole"][card]] > 0:  # no pod can have it whole any more
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
