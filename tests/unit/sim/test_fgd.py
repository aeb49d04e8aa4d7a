"""Filling a cluster pod by pod: the rules of the protocol, and what each policy makes of them."""

from collections.abc import Sequence
from random import Random

import pytest
from bench.fgd.arrivals import inflated
from bench.fgd.catalog import POLICIES, Setting, policy_named
from bench.fgd.fill import Cluster, Outcome, fill
from bench.fgd.gradient import GradientDescent, typical_requests
from bench.fgd.lists import ListedNode, ListedPod
from bench.fgd.nodes import ListedNodes, NodeOffer
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.scheduler.core.scoring.gpu_milli import Request

MODELS = ("A", "B")

offers = st.builds(
    NodeOffer,
    cpu=st.sampled_from([8000, 32_000, 96_000]),
    memory=st.sampled_from([16, 64, 512]),
    cards=st.sampled_from([0, 1, 2, 4, 8]),
    model=st.sampled_from(MODELS),
)
requests = st.one_of(
    st.builds(Request, cpu=st.integers(0, 32_000), memory=st.integers(0, 64)),
    st.builds(
        Request,
        cpu=st.integers(0, 12_000),
        memory=st.integers(0, 64),
        cards=st.just(1),
        milli=st.sampled_from([110, 160, 320, 470, 500, 650, 810, 1000]),
        models=st.frozensets(st.sampled_from([*MODELS, "C"]), max_size=2),
    ),
    st.builds(
        Request,
        cpu=st.integers(0, 64_000),
        memory=st.integers(0, 64),
        cards=st.sampled_from([2, 4, 8]),
        milli=st.just(1000),
        models=st.frozensets(st.sampled_from(MODELS), max_size=1),
    ),
)


def chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311  a simulation's chance


def listed(offer: Sequence[NodeOffer]) -> list[ListedNode]:
    return [ListedNode(f"n{i}", o) for i, o in enumerate(offer)]


def named(asked: Sequence[Request]) -> list[ListedPod]:
    return [ListedPod(f"p{i}", request) for i, request in enumerate(asked)]


def run(nodes: Sequence[ListedNode], pods: Sequence[ListedPod], policy: str, seed: int) -> Outcome:
    random = chance(seed)
    cluster = Cluster(nodes, random)
    setting = Setting(cluster.free, [pod.request for pod in pods], random)
    arrivals = [(str(i), pod) for i, pod in enumerate(pods)]
    return fill(cluster, arrivals, POLICIES[policy](setting))


def check(nodes: Sequence[ListedNode], pods: Sequence[ListedPod], outcome: Outcome) -> None:
    """Replay the placements on plain dictionaries, arrival by arrival."""
    cpu = {n.name: n.offer.cpu for n in nodes}
    memory = {n.name: n.offer.memory for n in nodes}
    cards = {n.name: [1000] * n.offer.cards for n in nodes}
    model = {n.name: n.offer.model for n in nodes}
    assert [p.pod for p in outcome.placements] == [pod.name for pod in pods]
    for pod, place in zip(pods, outcome.placements, strict=True):
        want = pod.request

        def fits(node: str, want: Request = want) -> bool:
            return (
                cpu[node] >= want.cpu
                and memory[node] >= want.memory
                and sum(left >= want.milli for left in cards[node]) >= want.cards
                and (not want.cards or not want.models or model[node] in want.models)
            )

        if not place.node:
            assert not any(map(fits, cpu)), "a pod was dropped that fitted"
            assert place.gpus == ()
            continue
        assert fits(place.node)
        assert len(set(place.gpus)) == len(place.gpus) == want.cards
        cpu[place.node] -= want.cpu
        memory[place.node] -= want.memory
        for card in place.gpus:
            cards[place.node][card] -= want.milli
            assert cards[place.node][card] >= 0


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(60), deadline=None)
@given(
    offer=st.lists(offers, min_size=1, max_size=8).filter(lambda o: any(n.cards for n in o)),
    asked=st.lists(requests, min_size=1, max_size=60),
    seed=st.integers(0, 3),
)
def test_capacities_and_models_are_kept_and_what_fits_is_placed(
    policy: str, offer: list[NodeOffer], asked: list[Request], seed: int
) -> None:
    nodes, pods = listed(offer), named(asked)
    outcome = run(nodes, pods, policy, seed)
    check(nodes, pods, outcome)
    assert outcome.pods == len(pods)
    assert outcome.dropped.total() == sum(not p.node for p in outcome.placements)
    assert outcome.allocated == sum(
        pod.request.gpu for pod, p in zip(pods, outcome.placements, strict=True) if p.node
    )


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(20), deadline=None)
@given(asked=st.lists(requests, min_size=2, max_size=40), cut=st.integers(1, 39))
def test_a_place_is_chosen_without_sight_of_later_arrivals(
    policy: str, asked: list[Request], cut: int
) -> None:
    nodes, pods = (
        listed([NodeOffer(96_000, 512, 8, "A"), NodeOffer(32_000, 64, 2, "B")]),
        named(asked),
    )
    random = chance(1)
    cluster = Cluster(nodes, random)
    setting = Setting(cluster.free, asked, random)
    arrivals = [(str(i), pod) for i, pod in enumerate(pods)]
    first = fill(cluster, arrivals[:cut], POLICIES[policy](setting))
    assert run(nodes, pods, policy, 1).placements[:cut] == first.placements


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_run(policy: str) -> None:
    nodes = listed([NodeOffer(64_000, 512, 4, "A")] * 6)
    pods = named([Request(4000, 8, 1, milli) for milli in (470, 320, 810, 650, 1000) * 8])
    assert run(nodes, pods, policy, 7).placements == run(nodes, pods, policy, 7).placements


MARKS = [
    # what is shown, milli that come on one node of two cards, allocation at the marks
    ("the last state up to the mark", [1000, 500, 500, 600], {"100": 100.0, "130": 100.0}),
    (
        "an arrival beyond the mark comes after it",
        [1000, 900, 200, 500],
        {"100": 95.0, "130": 95.0},
    ),
    ("a mark that is not come near is not told", [1000], {}),
    ("near enough is reached", [1000, 995], {"100": 99.75}),
]


@pytest.mark.parametrize(("sizes", "told"), [c[1:] for c in MARKS], ids=[c[0] for c in MARKS])
def test_the_allocation_at_arrived_demand(sizes: list[int], told: dict[str, float]) -> None:
    pods = named([Request(1, 1, 1, size) for size in sizes])
    outcome = run(listed([NodeOffer(100, 100, 2, "A")]), pods, "best-fit", 0)
    assert outcome.allocation == told


def test_the_first_drop_states_demand_and_drops_by_class() -> None:
    sizes = [(1, 1000), (1, 600), (1, 600), (2, 1000), (0, 0)]
    pods = named([Request(1, 60 if not n else 1, n, milli) for n, milli in sizes])
    outcome = run(listed([NodeOffer(100, 50, 2, "A")]), pods, "best-fit", 0)
    assert outcome.first_drop_at == pytest.approx(110)
    assert outcome.dropped == {"share": 1, "2-gpu": 1, "cpu": 1}


@settings(deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 160, 500, 1000]), min_size=1, max_size=30).filter(any),
    ratio=st.sampled_from([0.5, 1.0, 1.3]),
    seed=st.integers(0, 5),
)
def test_arrivals_stop_within_a_card_of_the_ratio(
    sizes: list[int], ratio: float, seed: int
) -> None:
    capacity = 20_000
    pods = named([Request(1, 1, 1 if size else 0, size) for size in sizes])
    drawn = inflated(pods, capacity, ratio, chance(seed))
    asked = sum(pod.request.gpu for pod in drawn)
    if sum(sizes) > ratio * capacity:
        assert asked <= ratio * capacity
        assert len(drawn) < len(pods)
    else:
        assert ratio * capacity - 1000 < asked <= ratio * capacity
        originals = sorted(pod.name for pod in drawn[: len(pods)])
        assert originals == sorted(pod.name for pod in pods), "the list itself comes first"


def test_copies_are_counted_by_a_card_where_they_stop() -> None:
    pods = named([Request(1, 1, 8, 1000)])
    assert len(inflated(pods, 100_000, 1.0, chance(0))) == 13, "the last one goes beyond"


def test_typical_requests_are_the_most_popular_and_sum_to_one() -> None:
    asked = [Request(1000, 5, 1, 500)] * 60 + [Request(2000, 6)] * 36 + [Request(9, 9, 1, 10)] * 4
    typical = dict(typical_requests(asked))
    assert typical == {
        Request(1000, 0, 1, 500): pytest.approx(60 / 96),
        Request(2000, 0): pytest.approx(36 / 96),
    }


USABLE = [
    # what is shown, free CPU, free milli of two cards, what is usable of it
    ("all of it", 8000, (1000, 1000), 2000),
    ("not without the CPU", 3000, (1000, 1000), 0),
    ("not the card with too little", 8000, (1000, 400), 1000),
    ("nothing where no card holds it", 8000, (400, 400), 0),
]


@pytest.mark.parametrize(
    ("cpu", "milli", "usable"), [c[1:] for c in USABLE], ids=[c[0] for c in USABLE]
)
def test_what_a_typical_request_can_use(cpu: int, milli: tuple[int, int], usable: int) -> None:
    nodes = ListedNodes.fresh([NodeOffer(cpu, 100, 2, "A")])
    nodes.milli[0] = milli
    gradient = GradientDescent(nodes, [(Request(4000, 0, 1, 500), 1.0)])
    assert gradient.usable(nodes.cpu, nodes.milli, nodes.model)[0] == usable


def test_policies_are_found_however_their_names_are_written() -> None:
    names = ("bestfit", "Best_Fit", "best fit", "fgd")
    assert [policy_named(name) for name in names] == ["best-fit"] * 3 + ["fgd"]
    with pytest.raises(ValueError, match="choose one of lockstep, fgd"):
        policy_named("worst")
