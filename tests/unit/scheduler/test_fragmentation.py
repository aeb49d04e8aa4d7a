"""Which place leaves the most for the requests that usually come."""

from collections.abc import Mapping

import numpy as np
import pytest
from bench.fgd.nodes import ListedNodes, NodeOffer
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.scheduler.core.scoring.card_value import worth_of_rest
from lockstep.scheduler.core.scoring.demand import Demand, PerGpu
from lockstep.scheduler.core.scoring.fragmentation import Foresight
from lockstep.scheduler.core.scoring.gpu_milli import Extent, Request
from lockstep.scheduler.core.scoring.stranded_gpus import Shortage

WORTH = [
    # what is shown, how often each size comes, milli left, worth
    ("a whole card is worth a card", {1000: 1, 470: 1}, 1000, 1000),
    ("nothing is left, nothing is lost", {500: 1}, 0, 0),
    ("halves are worth half a card", {500: 1}, 500, 500),
    ("what no size fits is worth nothing", {810: 1, 500: 1}, 190, 0),
    ("one that only halves as a pair is worth half", {470: 1}, 530, 500),
    ("a size that fills what others must leave is free", {810: 9, 160: 1}, 190, 0),
    ("an 810 takes the whole card", {810: 9, 160: 1}, 840, 1000),
    ("two thirds and a third", {650: 2, 320: 5}, 350, 333),
    ("without shares the rest weighs what it is", {}, 370, 370),
]


@pytest.mark.parametrize(
    ("rates", "left", "worth"), [c[1:] for c in WORTH], ids=[c[0] for c in WORTH]
)
def test_worth_of_a_card_s_rest(rates: Mapping[int, float], left: int, worth: float) -> None:
    assert worth_of_rest(rates)[left] == pytest.approx(worth, abs=1)


sizes = st.dictionaries(st.integers(1, 1000), st.integers(1, 50), max_size=8)


@settings(deadline=None)
@given(sizes)
def test_more_left_is_never_worth_less_nor_above_a_card(rates: dict[int, int]) -> None:
    worth = worth_of_rest({size: float(rate) for size, rate in rates.items()})
    assert (np.diff(worth) >= -1e-6).all()
    assert worth[0] == pytest.approx(0)
    assert worth[1000] == pytest.approx(1000)


@settings(deadline=None)
@given(sizes, st.integers(0, 1000), st.integers(0, 1000))
def test_two_rests_are_together_worth_at_most_both_at_once(
    rates: dict[int, int], one: int, other: int
) -> None:
    worth = worth_of_rest({size: float(rate) for size, rate in rates.items()})
    one, other = one // 10 * 10, other // 10 * 10
    if one + other <= 1000:
        assert worth[one] + worth[other] <= worth[one + other] + 1e-6


def test_stranding_falls_from_everything_to_nothing_as_more_is_left() -> None:
    shortage = Shortage(PerGpu(10_000.0, 4_000.0))
    left = np.array([-200_000, 0, 20_000, 40_000, 60_000, 200_000])
    lost = shortage.stranded(np.full(6, 4000), left)
    assert (np.diff(lost) <= 0).all()
    assert lost[1] == pytest.approx(4000, rel=0.02)
    assert lost[3] == pytest.approx(4000 / 10 * 0.4 * 2, rel=0.02)  # the mean: spread times 0.4
    assert lost[-1] == 0


def test_the_scarcer_of_two_resources_strands() -> None:
    shortage = Shortage(PerGpu(10_000.0, 100.0), PerGpu(40_000.0, 100.0))
    idle = np.array([1000])
    lost = shortage.stranded(idle, np.array([10_000_000]), np.array([20_000]))
    assert lost[0] == pytest.approx(500, rel=0.01)


def share(milli: int, cpu: int = 1000) -> Request:
    return Request(cpu, 1, 1, milli)


def whole(cards: int = 1, cpu: int = 8000, *models: str) -> Request:
    return Request(cpu, 1, cards, 1000, frozenset(models))


def best(nodes: ListedNodes, usual: Mapping[Request, float], request: Request) -> tuple[int, int]:
    """Return the row and the card with the best rating, the price of models taken off."""
    foresight = Foresight(nodes, Demand(usual))
    rows = np.flatnonzero(nodes.fits(request, slice(None)))
    rating, card = foresight.rate(nodes, rows, request)
    net = rating - request.gpu * foresight.price[nodes.model[rows]]
    chosen = int(net.argmax())
    return int(rows[chosen]), int(card[chosen])


def two_cards(*left: int, cpu: int = 64_000) -> ListedNodes:
    return ListedNodes(
        cpu=np.array([cpu]),
        memory=np.array([1000]),
        milli=np.array([left]),
        model=np.array([0]),
        models=("A",),
        extent=Extent(cpu, 1000, 2000, cpu, 2000),
    )


SHARES = {share(810): 5.0, share(650): 3.0, share(470): 6.0, share(320): 4.0, share(160): 2.0}
CARDS = [
    # what is shown, what is left of both cards, milli asked, card taken
    ("a filler goes beside the size that leaves room for nothing else", (190, 530), 160, 0),
    ("a third goes beside two thirds", (530, 350), 320, 1),
    ("the second half goes beside the first", (1000, 530), 470, 1),
    ("a third opens a card rather than spoil a half", (1000, 530), 320, 0),
    ("the only card that holds it", (500, 900), 810, 1),
]


@pytest.mark.parametrize(
    ("left", "asked", "card"), [c[1:] for c in CARDS], ids=[c[0] for c in CARDS]
)
def test_the_card_that_a_share_is_put_on(left: tuple[int, int], asked: int, card: int) -> None:
    assert best(two_cards(*left), SHARES, share(asked)) == (0, card)


def nodes_of(*offers: NodeOffer) -> ListedNodes:
    return ListedNodes.fresh(offers)


BIG, SMALL = NodeOffer(96_000, 1000, 8, "A"), NodeOffer(96_000, 1000, 2, "A")
RICH, POOR = NodeOffer(100_000, 1000, 2, "A"), NodeOffer(20_000, 1000, 2, "A")
RARE, PLENTY = NodeOffer(64_000, 1000, 4, "RARE"), NodeOffer(64_000, 1000, 4, "PLENTY")
NODES = [
    # what is shown, the nodes, what usually comes, the request, the row taken
    (
        "one card leaves whole the node that eight cards need",
        nodes_of(BIG, SMALL),
        {whole(8, 64_000): 2.0, whole(): 2.0},
        whole(),
        1,
    ),
    (
        "much CPU is taken where there is more than the GPUs need",
        nodes_of(POOR, RICH),
        {whole(1, 10_000): 1.0},
        whole(1, 16_000),
        1,
    ),
    (
        "little CPU is taken where there is little",
        nodes_of(RICH, POOR),
        {whole(1, 10_000): 1.0},
        whole(1, 2_000),
        1,
    ),
    (
        "no GPU: where CPU is to spare",
        nodes_of(POOR, RICH),
        {whole(1, 10_000): 1.0},
        Request(12_000, 1),
        1,
    ),
    (
        "any model: not the one that others insist on",
        nodes_of(RARE, PLENTY, PLENTY),
        {whole(1, 8000, "RARE"): 1.0, whole(): 1.0},
        whole(),
        1,
    ),
]


@pytest.mark.parametrize(
    ("nodes", "usual", "request_", "row"), [c[1:] for c in NODES], ids=[c[0] for c in NODES]
)
def test_the_node_that_is_taken(
    nodes: ListedNodes, usual: Mapping[Request, float], request_: Request, row: int
) -> None:
    assert best(nodes, usual, request_)[0] == row


def test_a_model_in_demand_costs_more_and_equals_cost_alike() -> None:
    nodes = nodes_of(RARE, PLENTY, PLENTY)
    foresight = Foresight(nodes, Demand({whole(1, 1, "RARE"): 1.0, whole(): 1.0}))
    rare, plenty = foresight.price
    assert rare > 2 * plenty
    plain = Foresight(nodes, Demand({whole(): 1.0}))
    assert plain.price == pytest.approx([1.0, 1.0])


def test_the_last_nodes_for_several_cards_are_left_without_grants() -> None:
    big, poor = NodeOffer(128_000, 1000, 8, "A"), NodeOffer(24_000, 1000, 2, "A")
    nodes = nodes_of(*10 * [big], *4 * [poor])
    foresight = Foresight(nodes, Demand({whole(8, 120_000): 1.0, whole(1, 10_000): 20.0}))

    def favourite() -> int:
        foresight.keep_up(nodes)
        rows = np.flatnonzero(nodes.fits(Request(12_000, 1), slice(None)))
        rating, _ = foresight.rate(nodes, rows, Request(12_000, 1))
        return int(rows[rating.argmax()])

    assert favourite() < 10
    for row in range(8):
        nodes.take(row, Request(128_000, 1), ())
    assert favourite() >= 10


def test_room_that_hardly_moved_is_not_weighed_anew() -> None:
    nodes = nodes_of(*40 * [NodeOffer(128_000, 1000, 8, "A")])
    foresight = Foresight(nodes, Demand({whole(8, 120_000): 1.0, whole(1, 10_000): 20.0}))
    before = foresight.weighed
    nodes.take(0, Request(12_000, 1), ())
    foresight.keep_up(nodes)
    assert foresight.weighed == before


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    nodes = two_cards(500, 1000)
    for request, cards in (
        (share(600), (0,)),
        (whole(2), (0, 1)),
        (share(100, cpu=65_000), (1,)),
        (whole(2), (1, 1)),
    ):
        with pytest.raises(ValueError, match="does not fit"):
            nodes.take(0, request, cards)
    assert nodes.milli.tolist() == [[500, 1000]]
    assert nodes.cpu.tolist() == [64_000]
    assert (nodes.idle.tolist(), nodes.whole.tolist()) == ([1500], [1])


def test_what_is_idle_and_whole_follows_what_is_taken() -> None:
    nodes = two_cards(500, 1000)
    nodes.take(0, share(300), (0,))
    nodes.take(0, share(100), (1,))
    assert nodes.milli.tolist() == [[200, 900]]
    assert (nodes.idle.tolist(), nodes.whole.tolist()) == ([1100], [0])
