"""Time of a stub GPU on the virtual clock: each share gets what it was granted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.shared_cards import SharedCards
from tests.support.waiting import eventually_sync, stretched

from lockstep.devices.sharing.core.leases import PERIOD

POINT = 1.0
SECONDS = 1.0


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[SharedCards]:
    found = SharedCards(tmp_path)
    yield found
    found.close()


def busy(cards: SharedCards, *programs: str, **more: object) -> list[float]:
    """Run programs, each as ``COMPUTE[POLICY] WHAT``; return the percent of time that each got."""
    named = {}
    for number, program in enumerate(programs):
        compute, _, what = program.partition(" ")
        digits = compute.rstrip("abcdefghijklmnopqrstuvwxyz")
        policy = compute[len(digits) :] or "fixed"
        name = f"t{number}"
        cards.share(name, compute=int(digits), policy=policy, **more)  # type: ignore[arg-type]
        named[name] = what
    cards.play(SECONDS, named)
    return [100 * cards.ran(name) / (SECONDS * 1e9) for name in named]


KERNELS = {"5us": 0.0005, "200us": 0.02, "3ms": 0.3, "20ms": 2.0, "200ms": 20.0}
"""By kernel its length in percent of a second: a share may be off by one kernel."""


@pytest.mark.parametrize("compute", [10, 50, 90])
@pytest.mark.parametrize("kernel", KERNELS)
def test_one_share_alone_keeps_to_it(cards: SharedCards, kernel: str, compute: int) -> None:
    [got] = busy(cards, f"{compute} run busy_{kernel} {SECONDS}")
    assert abs(got - compute) <= POINT + KERNELS[kernel]


CROWDS = [
    (["30 run busy_5us 1", "70 run busy_1ms 1"], [30, 70], 0.1),
    # The last kernel, which runs beyond the second, and the window of one turn.
    (["50 run busy_5us 1", "50 run busy_20ms 1"], [50, 50], 2.0 + 1.0),
    (["30 graph busy_20us 50 1", "10 copy 1000000 1", "60 run busy_200us 1"], [30, 10, 60], 0.1),
    (["20burst run busy_50us 1", "50burst run busy_50us 1"], [35, 65], 0.1),
    (["50 run busy_50us 1", "0 run busy_50us 1", "0 run busy_100us 1"], [50, 25, 25], 0.1),
]


@pytest.mark.parametrize(("programs", "wanted", "longest"), CROWDS)
def test_shares_beside_each_other_keep_to_them(
    cards: SharedCards, programs: list[str], wanted: list[float], longest: float
) -> None:
    got = busy(cards, *programs)
    assert got == [pytest.approx(one, abs=POINT + longest) for one in wanted]


def test_32_containers_on_a_card_keep_to_their_parts(cards: SharedCards) -> None:
    got = busy(cards, *["3 run busy_100us 1"] * 32)
    assert got == [pytest.approx(3, abs=POINT / 2)] * 32


WAITING = [("40 load 1000000 1", "60 run busy_200us 1"), ("20 load 100000 1", "80 load 1000000 1")]


@pytest.mark.parametrize("programs", WAITING)
def test_copies_that_the_host_waits_for_get_their_share(
    cards: SharedCards, programs: tuple[str, ...]
) -> None:
    wanted = [float(program.split()[0]) for program in programs]
    assert busy(cards, *programs) == [pytest.approx(one, abs=POINT) for one in wanted]


def test_copies_pay_for_no_kernel_of_another(cards: SharedCards) -> None:
    names = {"a": "load 10000000 1", "b": "run draw_5us_20ms 1"}
    cards.share("a", compute=30)
    cards.share("b", compute=70)
    used = cards.play(SECONDS, names)
    for name in names:
        assert used[name][0].busy / 1e7 == pytest.approx(cards.ran(name) / 1e7, abs=0.5)


VARYING = [("vary_133us_3600us", "1"), *(("draw_5us_200ms", seed) for seed in ("1", "4", "25"))]
"""Kernels of one function that are not alike, and the seed of their lengths."""


@pytest.mark.parametrize("compute", [10, 30, 90])
@pytest.mark.parametrize(("kernel", "seed"), VARYING)
def test_kernels_that_vary_go_over_by_one_at_most(
    cards: SharedCards, kernel: str, seed: str, compute: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_CUDA_SEED", seed)
    [got] = busy(cards, f"{compute} run {kernel} {SECONDS}")
    window = compute * PERIOD / 1e9
    assert got >= compute - POINT
    # A kernel cannot be stopped; one may begin while the share still has any of its window.
    assert got - cards.last("t0") / (SECONDS * 1e7) <= compute + window + POINT


def test_idle_time_is_lent_and_taken_back(cards: SharedCards) -> None:
    lender, borrower = busy(cards, "50burst wait 0.5 run busy_50us 0.5", "20burst run busy_50us 1")
    assert lender == pytest.approx(32.5, abs=POINT)
    assert borrower == pytest.approx(67.5, abs=POINT)


def test_ranks_on_several_cards_run_in_step(cards: SharedCards) -> None:
    for name in ("a", "b"):
        cards.share(name, cards=(0, 1), compute=50)
    what = f"steps busy_2ms meet_2_1ms {SECONDS}"
    said = cards.play_gangs(SECONDS + 0.2, {"a": what, "b": what})
    # A step takes 3 ms, and twice that beside another; a rank out of step would spin for more.
    alone = SECONDS * 1000 / 3
    for steps in said.values():
        assert steps == [pytest.approx(alone / 2, rel=0.05)] * 2


def test_offline_work_is_gone_when_online_work_comes(cards: SharedCards) -> None:
    cards.share("on", compute=60)
    cards.share("off", offline=True)
    cards.play(SECONDS, {"on": "wait 0.5 run busy_200us 0.5", "off": "run busy_200us 1"})
    online, offline = (cards.ran(name) / 1e7 for name in ("on", "off"))
    # Half a second alone, then two fifths of the rest, less a pause when the other comes.
    assert online == pytest.approx(30, abs=1.2)
    assert offline == pytest.approx(70, abs=2.5)


def test_the_same_run_comes_out_the_same(tmp_path: Path) -> None:
    outcomes = []
    for number in range(2):
        place = tmp_path / str(number)
        place.mkdir()
        cards = SharedCards(place)
        outcomes.append(busy(cards, "30 run busy_200us 1", "60 run busy_3ms 1"))
        cards.close()
    assert outcomes[0] == outcomes[1]


def test_without_an_agent_the_share_is_kept_aloud(cards: SharedCards) -> None:
    cards.share("one", compute=30)
    cards.step(1)
    said, error = cards.start("one", "run", "busy_1ms", "12").communicate(timeout=stretched(60))
    # Two seconds wait for a first lease; then 30 % of ten.
    assert int(said.split()[-1]) == pytest.approx(3000, rel=0.03)
    assert "grants no leases; 30 % of each 20 ms are used" in error


def test_a_killed_program_stops_no_other(cards: SharedCards) -> None:
    cards.share("one", compute=50)
    cards.share("other", compute=50)
    cards.start("one", "run", "busy_1ms", "600").kill()
    process = cards.start("other", "run", "busy_1ms", "0.2")
    eventually_sync(lambda: process.poll() is not None, 30, "the other one goes on")
    assert process.returncode == 0
