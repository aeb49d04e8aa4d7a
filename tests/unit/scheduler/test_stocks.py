"""How many aligned pods nodes hold: read off all of them at once, and off each alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.api.names import CPU, GPU, NICS
from lockstep.scheduler.core.model.pod_shape import PodShape, Shapes
from lockstep.scheduler.core.resources.alignment import Alignment
from lockstep.scheduler.core.resources.columns import CPU_COLUMN, Columns
from lockstep.scheduler.core.resources.device_columns import offered
from lockstep.scheduler.core.resources.device_inventory import Card, Layout, Nic, Socket
from lockstep.scheduler.core.resources.gpu_shares import GpuShare
from lockstep.scheduler.core.scoring.feasibility import members_fit


def layout(cards: int, per_root: int) -> Layout:
    """So many GPUs, a NIC to every root of them, in two NUMA nodes."""
    nics = -(-cards // per_root)
    return Layout(
        tuple(Card(i, 0, 2 * i // cards, i // per_root, "", 80) for i in range(cards)),
        (1 << cards) - 1,
        tuple(Nic(i, 2 * i // nics, i, 0, 0, "") for i in range(nics)),
        (1 << nics) - 1,
        tuple(Socket(i, 8000, 0) for i in range(2)),
        stated=True,
    )


@st.composite
def tables(draw: st.DrawFn, cards: int) -> tuple[Columns, np.ndarray]:
    """Nodes of one or two layouts, some devices of each in use, by column and node."""
    columns, taken = Columns(), st.lists(st.integers(0, cards - 1), max_size=6)
    columns.open_inside(cards, cards, 2)
    few = st.integers(1, 4)
    node = st.tuples(st.sampled_from((1, 2)), few, few, taken, taken)
    nodes = draw(st.lists(node, min_size=1, max_size=8))
    layouts = [layout(cards, per_root) for per_root, *_ in nodes]
    offers = [offered(columns, one) for one in layouts]
    free = np.full((len(columns), len(nodes)), 1 << 40, dtype=np.int64)
    for node, (offer, (_, cpus, local, gpus, nics)) in enumerate(zip(offers, nodes, strict=True)):
        free[CPU_COLUMN, node] = 500 * cpus
        for column, amount in offer.items():
            free[column, node] = amount
        free[columns.socket_ids["cpu"], node] = 500 * local
        for gpu in gpus:
            for kind, part in zip(("whole", "compute", "memory"), (1, 40, 30), strict=True):
                free[columns.card_ids[kind][gpu], node] -= part
        for nic in nics:
            free[columns.nic_ids[nic], node] = 0
    return columns, free


def shape_of(columns: Columns, relations: set[str], share: GpuShare | None, nics: int) -> PodShape:
    request = {CPU: 500, NICS: nics, GPU: 0 if share else 2}
    request = {name: amount for name, amount in request.items() if amount}
    shape = Shapes(columns).asking(request)
    shape.share, shape.alignment = share, Alignment(frozenset(relations))
    return shape


@pytest.mark.parametrize("cards", [4, 64])
@pytest.mark.parametrize("share", [None, GpuShare(1, 60, 0)])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_nodes_hold_together_what_each_holds_alone(cards, share, data):
    columns, free = data.draw(tables(cards))
    relations = data.draw(st.sets(st.sampled_from(("numa", "nvlink", "pcie")), min_size=1))
    shape = shape_of(columns, relations, share, data.draw(st.integers(0, 1)))
    found = members_fit(free, shape)
    alone = [int(members_fit(free[:, i : i + 1], shape)[0]) for i in range(free.shape[1])]
    assert found.tolist() == alone


def test_a_node_with_little_room_says_nothing_of_the_next():
    columns = Columns()
    columns.open_inside(4, 2, 2)
    offer = offered(columns, layout(4, 2))
    free = np.zeros((len(columns), 2), dtype=np.int64)
    free[list(offer)] = np.array(list(offer.values()))[:, None]
    free[CPU_COLUMN] = 500, 2000
    free[columns.socket_ids["cpu"][0]] = free[columns.socket_ids["cpu"][1]] = 8000, 500
    shape = shape_of(columns, {"numa"}, GpuShare(1, 60, 0), 0)
    assert members_fit(free, shape).tolist() == [1, 2]
