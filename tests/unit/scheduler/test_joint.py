"""Pods of several kinds on the same nodes: placed whenever there is any way, and only then."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.brute_devices import Gpu, Machine, Nic, Wants, fit
from tests.support.drawn import gang, node, pod
from tests.support.examples import examples

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.resources.alignment import DeviceAsk
from lockstep.scheduler.core.resources.exact_device_fit import (
    ExactFit,
    Left,
    OpenCard,
    OpenNic,
    OpenSocket,
    PodKind,
    SearchBudget,
    alike,
)
from lockstep.scheduler.core.resources.gpu_shares import GpuShare
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

RELATIONS = ("nvlink", "numa", "pcie")
PLACE = st.integers(0, 1)
LEFT_OF_CARD = st.sampled_from([(True, 100, 16), (True, 100, 8), (False, 50, 8), (False, 0, 0)])


@st.composite
def machines(draw: st.DrawFn, gpus: int = 5, nics: int = 4) -> Machine:
    cards = st.tuples(PLACE, PLACE, st.integers(0, 2), LEFT_OF_CARD)
    return Machine(
        tuple(Gpu(*at, *left) for *at, left in draw(st.lists(cards, min_size=1, max_size=gpus))),
        tuple(Nic(*at) for at in draw(st.lists(st.tuples(PLACE, PLACE), max_size=nics))),
        tuple(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))),
    )


@st.composite
def wants(draw: st.DrawFn) -> Wants:
    must = frozenset(draw(st.sets(st.sampled_from(RELATIONS))))
    compute, memory = draw(st.sampled_from([(0, 0), (0, 0), (50, 0), (25, 8), (0, 4)]))
    gpus = draw(st.integers(int(compute + memory > 0), 3))
    return Wants(gpus, draw(st.integers(0, 2)), must, compute, memory, draw(st.integers(0, 2)))


MIXES = st.lists(st.tuples(wants(), st.integers(0, 3)), min_size=1, max_size=3)


def kind(one: Wants) -> PodKind:
    share = GpuShare(one.gpus, one.compute, one.memory) if one.shared else None
    ask = DeviceAsk(one.gpus, one.nics, one.must, one.shared)
    return PodKind(ask, share, one.cpu if "numa" in one.must else 0)


def left(machine: Machine) -> Left:
    return Left(
        tuple(
            OpenCard(g.numa, g.nvlink, g.root, g.whole, g.compute, g.memory, i)
            for i, g in enumerate(machine.gpus)
        ),
        tuple(OpenNic(*nic, i) for i, nic in enumerate(machine.nics)),
        tuple(OpenSocket(i, cpus, 0) for i, cpus in enumerate(machine.cpus)),
    )


@settings(max_examples=examples(300), deadline=None)
@given(machines(), MIXES)
def test_a_node_holds_a_mix_when_there_is_any_way(machine, mix):
    kinds, counts = tuple(kind(one) for one, _ in mix), [count for _, count in mix]
    pods = tuple(one for one, count in mix for _ in range(count))[:4]
    counts = [Counter(pods)[one] if one in pods else 0 for one in dict.fromkeys(o for o, _ in mix)]
    kinds = tuple(dict.fromkeys(kinds))
    if len(kinds) == len(counts):
        found = ExactFit(kinds).holds(left(machine), counts, SearchBudget())
        assert found == fit((machine,), pods)


@given(machines(), st.permutations(range(5)), st.permutations(range(3)), st.booleans())
def test_states_that_differ_only_in_names_get_the_same_answer(machine, order, roots, swapped):
    """Relabelled sockets, domains and roots: whatever is known of one holds for the other."""
    flip = (1, 0) if swapped else (0, 1)
    gpus = [g._replace(numa=flip[g.numa], root=roots[g.root]) for g in machine.gpus]
    other = Machine(
        tuple(gpus[i] for i in order if i < len(gpus)),
        tuple(Nic(flip[nic.numa], roots[nic.root]) for nic in machine.nics),
        tuple(machine.cpus[i] for i in flip),
    )
    asked = (
        PodKind(DeviceAsk(2, 1, frozenset(RELATIONS)), None, 1),
        PodKind(DeviceAsk(1, 1, frozenset()), None),
    )
    answers = {
        ExactFit(asked).holds(state, counts, SearchBudget())
        for state in (left(machine), left(other), alike(left(machine)))
        for counts in [(1, 1)]
    }
    assert len(answers) == 1


def test_equal_positions_are_one_state():
    """Sixteen GPUs under eight equal roots: which of them are taken makes no difference."""
    cards = [OpenCard(i // 8, i // 8, i // 2, True, 0, 0, i) for i in range(16)]
    nics = [OpenNic(i // 8, i // 2, i) for i in range(16)]
    sockets = (OpenSocket(0, 8, 0), OpenSocket(1, 8, 0))
    states = {
        alike(Left(tuple(cards[:i] + cards[i + 1 :]), tuple(nics[:j] + nics[j + 1 :]), sockets))
        for i in range(16)
        for j in (i, i ^ 1)
    }
    assert len(states) == 1


def test_an_endless_search_says_that_it_does_not_know():
    """A card holds one share each: 18 are asked for, which no way gives, but there are many."""
    cards = [OpenCard(0, 0, i % 7, True, 100 - i, 0, i) for i in range(16)]
    nics = [OpenNic(0, i % 7, i) for i in range(14)]
    kinds = tuple(
        PodKind(DeviceAsk(n, n - 1, frozenset({"pcie"}), shared=True), GpuShare(n, 60, 0))
        for n in (2, 3, 4)
    )
    state, patience = Left(tuple(cards), tuple(nics), ()), SearchBudget(200)
    assert ExactFit(kinds).holds(state, (2, 2, 2), patience) is None
    assert ExactFit(kinds).most(state, (2, 2, 0), 2, 2, patience) == 0
    assert not patience.sure


# Gangs, through the scheduler itself.


def drawn(name: str, machine: Machine) -> Any:
    devices = [
        {"index": i, "nvlink": g.nvlink, "numa": g.numa, "pcie": g.root, "memory": 16}
        for i, g in enumerate(machine.gpus)
    ]
    devices += [
        {"index": i, "kind": "nic", "numa": n.numa, "pcie": n.root}
        for i, n in enumerate(machine.nics)
    ]
    sockets = [{"index": i, "cpus": cpus} for i, cpus in enumerate(machine.cpus)]
    return node(name, gpus=len(machine.gpus), cpu=64, devices=devices, numa_nodes=sockets)


def member(name: str, group: str, one: Wants) -> Any:
    requests: dict[str, Any] = {"lockstep.dev/nics": one.nics}
    if one.shared:
        requests["lockstep.dev/gpu-cards"] = one.gpus
        requests["lockstep.dev/gpu-compute"] = one.compute
        requests["lockstep.dev/gpu-memory"] = one.memory
    gpus = 0 if one.shared else one.gpus
    told = {"lockstep.dev/align-required": ",".join(sorted(one.must))}
    return pod(
        name, gpus=gpus, cpu=one.cpu, requests=requests, annotations=told, gang="g", group=group
    )


def decided(there: dict[str, Machine], mix: list[tuple[Wants, int]]) -> Cluster:
    """Return the cluster once a gang with a group for each kind of pod has been decided on."""
    cluster = Cluster()
    for name, machine in there.items():
        cluster.set_node(drawn(name, machine))
    groups = [{"name": f"k{i}", "min": count} for i, (_, count) in enumerate(mix)]
    cluster.set_gang(gang("g", groups=groups))
    for i, (one, count) in enumerate(mix):
        for number in range(count):
            cluster.set_pod(member(f"k{i}-{number}", f"k{i}", one))
    Decider(cluster).decide(0.0)
    return cluster


def unused(machine: Machine) -> Machine:
    return machine._replace(gpus=tuple(Gpu(*gpu[:3], memory=16) for gpu in machine.gpus))


def row(*places: tuple[int, int, int]) -> tuple[Gpu, ...]:
    return tuple(Gpu(*place, memory=16) for place in places)


def asks(gpus: int, nics: int = 0, must: str = "", **more: int) -> Wants:
    return Wants(gpus, nics, frozenset(must.split(",") if must else ()), **more)


HALVES = row(*[(i // 2, i // 2, i // 2) for i in range(4)])
MET = [
    # what is shown, the node, what each group asks for and how often, whether there is a way
    (
        "who may have any NUMA node leaves that with CPUs to who needs it",
        Machine(HALVES, (Nic(0, 0), Nic(1, 1)), (4, 0)),
        [(asks(2, 1), 1), (asks(1, 1, "numa", cpu=2), 1)],
        True,
    ),
    (
        "but there are no CPUs for two of them",
        Machine(HALVES, (Nic(0, 0), Nic(1, 1)), (3, 0)),
        [(asks(2), 1), (asks(1, 0, "numa", cpu=2), 2)],
        False,
    ),
    (
        "who takes any NIC leaves the GPUs beside one",
        Machine(HALVES, (Nic(0, 0), Nic(0, 0)), (0, 0)),
        [(asks(2, 1), 1), (asks(1, 1, "pcie"), 1)],
        True,
    ),
    (
        "shares go where no NVLink domain is broken",
        Machine(row((0, 0, 0), (0, 0, 0), (1, 0, 1), (1, 0, 1), (2, 0, 2)), (Nic(0, 0),), (0, 0)),
        [(asks(1, 1, compute=50), 2), (asks(2, 0, "nvlink"), 2)],
        False,
    ),
    (
        "two shares on one card, two whole domains beside it",
        Machine(row((0, 0, 0), (0, 0, 0), (1, 0, 1), (1, 0, 1), (2, 0, 2)), (Nic(0, 0),) * 2),
        [(asks(1, 1, compute=50), 2), (asks(2, 0, "nvlink"), 2)],
        True,
    ),
    (
        "an uneven split of one kind beside an even one of another",
        Machine(row(*[(0, 0, i // 2) for i in range(6)]), tuple(Nic(0, i) for i in (0, 1, 2, 2))),
        [(asks(3, 2, "pcie"), 1), (asks(2, 2, "pcie"), 1)],
        True,
    ),
]


@pytest.mark.parametrize("case", MET, ids=[c[0] for c in MET])
def test_kinds_that_meet_on_one_node(case):
    _, machine, mix, expected = case
    pods = tuple(one for one, count in mix for _ in range(count))
    assert fit((machine,), pods) == expected
    cluster = decided({"n": machine}, mix)
    standing = [m.name for m in cluster.pods.values() if m.node]
    assert len(standing) == (len(pods) if expected else 0)
    _check(cluster, {"n": machine})


# Large pods that may stand anywhere, and small ones that may not: who is first takes what the
# others need.
EASY = st.tuples(st.integers(2, 3), st.integers(0, 1)).map(lambda one: Wants(*one))
PICKY = st.tuples(
    st.integers(1, 2),
    st.integers(0, 2),
    st.sets(st.sampled_from(RELATIONS), min_size=1).map(frozenset),
    st.integers(0, 2),
).map(lambda one: Wants(*one[:3], cpu=one[3]))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(machines(gpus=5, nics=3).map(unused), min_size=1, max_size=1),
    st.tuples(EASY, st.just(1)),
    st.lists(st.tuples(PICKY, st.integers(1, 2)), min_size=1, max_size=2),
)
def test_a_mixed_gang_is_placed_when_any_way_exists(nodes, easy, others):
    mix = [(one, count) for one, count in (easy, *others) if one.gpus or one.nics or one.cpu]
    pods = tuple(one for one, count in mix for _ in range(count))
    there = {f"n{i}": machine for i, machine in enumerate(nodes)}
    cluster = decided(there, mix)
    standing = [m for m in cluster.pods.values() if m.node]
    expected = len(pods) if fit(tuple(there.values()), pods) else 0
    assert len(standing) == expected
    _check(cluster, there)


def _check(cluster: Cluster, there: dict[str, Machine]) -> None:
    """Each pod has what it asks for, where it was to be, and nobody else has it."""
    for name, machine in there.items():
        here = [m for m in cluster.pods.values() if m.node == name]
        gpus, cpus = list(machine.gpus), list(machine.cpus)
        nics: list[int] = []
        for one in here:
            shape, share, must = one.shape, one.shape.share, one.shape.alignment.required
            held, wired = indices_of(one.grant.gpus), indices_of(one.grant.nics)
            assert len(held) == (share.cards if share else shape.gpus)
            assert len(wired) == shape.nics
            nics += wired
            for i in held:
                compute, memory = (share.compute, share.memory) if share else (100, 16)
                gpus[i] = gpus[i]._replace(
                    compute=gpus[i].compute - compute, memory=gpus[i].memory - memory
                )
            numas = {gpus[i].numa for i in held} | {machine.nics[i].numa for i in wired}
            if "numa" in must:
                assert numas <= {one.grant.socket}
                cpus[one.grant.socket] -= shape.cpu // 1000
            if "nvlink" in must:
                assert len({gpus[i].nvlink for i in held}) <= 1
            if "pcie" in must and held and wired:
                roots = {gpus[i].root for i in held}
                assert roots == {machine.nics[i].root for i in wired}
        assert len(nics) == len(set(nics))
        assert all(g.compute >= 0 and g.memory >= 0 for g in gpus)
        assert all(cpu >= 0 for cpu in cpus)
