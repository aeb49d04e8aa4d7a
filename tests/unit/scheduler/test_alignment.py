"""Devices that must be close together: how many pods a node holds, and which devices they get."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.scheduler.core.resources.aligned_selection import choices
from lockstep.scheduler.core.resources.alignment import DeviceAsk, Stock, capacity, even
from lockstep.scheduler.core.resources.device_inventory import Layout, layout_of

RELATIONS = ("nvlink", "numa", "pcie")


def layout(
    gpus: list[tuple[int, int, int]], nics: list[tuple[int, int]], sockets: int = 0
) -> Layout:
    """Return a node with GPUs of (NVLink domain, NUMA node, root) and NICs of (NUMA node, root)."""
    devices = [
        {"index": i, "nvlink": link, "numa": numa, "pcie": root}
        for i, (link, numa, root) in enumerate(gpus)
    ]
    devices += [
        {"index": i, "kind": "nic", "numa": numa, "pcie": root}
        for i, (numa, root) in enumerate(nics)
    ]
    numa_nodes = [{"index": i, "cpus": 32} for i in range(sockets)]
    return layout_of(json.dumps(devices), len(gpus), json.dumps(numa_nodes))


@st.composite
def nodes_and_asks(draw: st.DrawFn, *, shared: bool = False) -> tuple[Stock, DeviceAsk]:
    """Draw a small node, partly in use, and what pods ask of it."""
    place = st.integers(0, 1)
    gpus = draw(st.lists(st.tuples(place, place, st.integers(0, 2)), min_size=1, max_size=5))
    nics = draw(st.lists(st.tuples(place, st.integers(0, 2)), max_size=4))
    here = layout(gpus, nics, sockets=2)
    most = 3 if shared else 1
    stock = Stock(
        here,
        tuple(draw(st.integers(0, most)) for _ in gpus),
        draw(st.integers(0, (1 << len(nics)) - 1)),
        tuple(draw(st.integers(0, 3)) for _ in here.sockets),
    )
    relations = frozenset(draw(st.sets(st.sampled_from(RELATIONS))))
    return stock, DeviceAsk(draw(st.integers(0, 3)), draw(st.integers(0, 3)), relations, shared)


def holdings(stock: Stock, ask: DeviceAsk):
    """Yield every set of devices (cards, NICs, NUMA node) that one pod may be given."""
    cards = [c for c, room in zip(stock.layout.cards, stock.rooms, strict=True) if room > 0]
    nics = [nic for nic in stock.layout.nics if stock.nics >> nic.number & 1]
    sockets = [s.number for s, q in zip(stock.layout.sockets, stock.quotas, strict=True) if q > 0]
    for chosen in combinations(cards, ask.cards):
        if "nvlink" in ask.relations and len({card.nvlink for card in chosen}) > 1:
            continue
        for taken in combinations(nics, ask.nics):
            if ask.paired and not all(
                even(
                    sum(card.pcie == root for card in chosen),
                    sum(nic.pcie == root for nic in taken),
                    ask,
                )
                for root in {one.pcie for one in (*chosen, *taken)}
            ):
                continue
            for socket in sockets if "numa" in ask.relations else [-1]:
                if socket == -1 or all(one.numa == socket for one in (*chosen, *taken)):
                    yield chosen, taken, socket


def without(stock: Stock, cards, nics, socket: int) -> Stock:
    gone = {card.number for card in cards}
    return stock._replace(
        rooms=tuple(
            room - (card.number in gone)
            for card, room in zip(stock.layout.cards, stock.rooms, strict=True)
        ),
        nics=stock.nics & ~sum(1 << nic.number for nic in nics),
        quotas=tuple(
            quota - (one.number == socket)
            for one, quota in zip(stock.layout.sockets, stock.quotas, strict=True)
        ),
    )


def most_by_trying(stock: Stock, ask: DeviceAsk, enough: int) -> int:
    best = 0
    for held in holdings(stock, ask):
        best = max(best, 1 + most_by_trying(without(stock, *held), ask, enough - 1))
        if best >= enough:
            break
    return best


@pytest.mark.parametrize("shared", [False, True])
@settings(deadline=None)
@given(data=st.data())
def test_a_node_holds_as_many_aligned_pods_as_brute_force(shared, data):
    stock, ask = data.draw(nodes_and_asks(shared=shared))
    found = capacity(stock, ask)
    bounded = [ask.cards and sum(stock.rooms), ask.nics and stock.nics.bit_count()]
    if not any((ask.cards, ask.nics)) and "numa" not in ask.relations:
        assert found > 100  # nothing is asked for: devices set no limit
        return
    limit = min([b for b, asked in zip(bounded, ask[:2], strict=True) if asked], default=6)
    assert found == most_by_trying(stock, ask, limit + 1)


@pytest.mark.parametrize("shared", [False, True])
@settings(deadline=None)
@given(data=st.data())
def test_as_many_pods_as_are_promised_are_given_aligned_devices(shared, data):
    stock, ask = data.draw(nodes_and_asks(shared=shared))
    promised = min(capacity(stock, ask), 6)
    for more in range(promised - 1, -1, -1):
        grant = choices(stock, ask, more)[0]
        held = next(
            (cards, nics, socket)
            for cards, nics, socket in holdings(stock, ask)
            if grant
            == (sum(1 << c.number for c in cards), sum(1 << n.number for n in nics), socket)
        )
        stock = without(stock, *held)


DGX = layout(
    [(0, i // 4, i // 2) for i in range(8)], [(i // 4, i // 2) for i in range(8)], sockets=2
)
"""Eight GPUs and eight NICs, two of each under a root, two roots to a NUMA node."""
PAIRS = layout([(i // 2, i // 4, i // 4) for i in range(8)], [(0, 0), (0, 0), (1, 1)], sockets=2)
"""NVLink in pairs, two pairs under a root; one root has two NICs, the other one."""

CAPACITIES = [
    # layout, cards, NICs, relations, free cards, free NICs, pods
    (DGX, 4, 4, "pcie numa", 0xFF, 0xFF, 2),
    (DGX, 4, 4, "pcie numa", 0b11101110, 0xFF, 0),
    (DGX, 4, 4, "pcie", 0b11101110, 0xFF, 1),
    (DGX, 2, 1, "pcie", 0xFF, 0b01010101, 4),
    (DGX, 2, 1, "pcie", 0b01010101, 0xFF, 0),
    (DGX, 1, 2, "pcie", 0xFF, 0xFF, 4),
    (DGX, 3, 2, "pcie", 0xFF, 0xFF, 2),
    (DGX, 8, 8, "pcie numa", 0xFF, 0xFF, 0),
    (PAIRS, 2, 0, "nvlink", 0b11011011, 0, 2),
    (PAIRS, 2, 1, "nvlink pcie", 0xFF, 0b111, 3),
    (PAIRS, 4, 0, "nvlink", 0xFF, 0, 0),
    (PAIRS, 4, 1, "pcie", 0xFF, 0b111, 2),
]


@pytest.mark.parametrize("case", CAPACITIES)
def test_capacity(case):
    where, cards, nics, relations, free, free_nics, pods = case
    rooms = tuple(free >> card.number & 1 for card in where.cards)
    stock = Stock(where, rooms, free_nics, (9, 9))
    assert capacity(stock, DeviceAsk(cards, nics, frozenset(relations.split()))) == pods


CHOICES = [
    # what is shown, layout, cards, NICs, relations, free cards, free NICs, GPUs, NICs
    ("a root in use before a whole one", DGX, 1, 1, "pcie", 0b11111110, 0xFE, 0b10, 0b10),
    ("the NUMA node with least left", DGX, 2, 0, "numa", 0b11110111, 0, 0b11, 0),
    ("whole roots for four", DGX, 4, 4, "pcie", 0b11111110, 0xFF, 0b00111100, 0b00111100),
    ("NICs beside the GPUs where it may be", DGX, 2, 2, "", 0b00110000, 0xFF, 0x30, 0x30),
    ("others' NICs where there are no more", DGX, 2, 2, "", 0b00110000, 0x0F, 0x30, 0b11),
    ("NICs of roots without free GPUs", DGX, 0, 1, "", 0b11111100, 0xFF, 0, 0b1),
    ("GPUs of roots without free NICs", DGX, 2, 0, "", 0xFF, 0b11110011, 0b1100, 0),
]


@pytest.mark.parametrize("case", CHOICES, ids=[c[0] for c in CHOICES])
def test_choice(case):
    _, where, cards, nics, relations, free, free_nics, gpus, held = case
    rooms = tuple(free >> card.number & 1 for card in where.cards)
    ask = DeviceAsk(cards, nics, frozenset(relations.split()))
    grant = choices(Stock(where, rooms, free_nics, (9, 9)), ask, 0)[0]
    assert (bin(grant.gpus), bin(grant.nics)) == (bin(gpus), bin(held))


@pytest.mark.parametrize(
    ("devices", "numa_nodes", "flaw"),
    [
        ("not json", "", "lockstep.dev/devices is not JSON: "),
        ('[{"index": "x"}]', "", 'lockstep.dev/devices[0].index is "x": Expected `int`'),
        ('[{"index": 1}, {"index": 1}]', "", "lockstep.dev/devices[1].index is 1; another gpu"),
        ('[{"index": 0, "numa": -2}]', "", "lockstep.dev/devices[0].numa is -2; it is at least -1"),
        ('[{"index": 0, "kind": "fpga"}]', "", 'lockstep.dev/devices[0].kind is "fpga": '),
        ("", '[{"index": 0, "cpus": "x"}]', "lockstep.dev/numa-nodes[0].cpus: 'x' is not a quant"),
        ("", '[{"index": 0, "cpus": -1}]', "lockstep.dev/numa-nodes[0].cpus is -1; it is at least"),
    ],
)
def test_an_unreadable_statement_counts_as_none_and_names_its_place(devices, numa_nodes, flaw):
    found = layout_of(devices, 2, numa_nodes)
    assert found.flaw.startswith(flaw)
    assert not found.stated and not found.sockets
    assert found.healthy == 0b11


def test_equal_layouts_are_one_object_whatever_the_devices_are_called():
    first, second = (
        layout_of(json.dumps([{"index": 0, "uuid": uuid}]), 1) for uuid in ("GPU-a", "GPU-b")
    )
    assert first is second
