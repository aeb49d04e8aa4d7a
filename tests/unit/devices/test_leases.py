"""The wheel of leases: who gets which part of a period."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.devices.sharing.core.leases import (
    MOST_DEBT,
    MOST_OWED,
    PERIOD,
    Policy,
    Tenant,
    Wheel,
    Window,
    plan,
)
from lockstep.devices.sharing.core.marks import Pressure, pressed

MS = 1_000_000


def tenant(key: str, compute: int = 0, policy: Policy = "fixed", **more: object) -> Tenant:
    return Tenant(key, ("a",), compute, policy, **{"wants": True, **more})  # type: ignore[arg-type]


def lengths(*tenants: Tenant, wheel: Wheel | None = None, elapsed: int = 0) -> dict[str, float]:
    _, windows = plan(wheel or Wheel(), tenants, elapsed)
    return {key: window.length / MS for key, window in windows.items()}


IDLE = {"wants": False}

CASES = [
    ("one alone gets its part and no more", [tenant("x", 30)], {"x": 6}),
    ("two get theirs", [tenant("x", 30), tenant("y", 70)], {"x": 6, "y": 14}),
    ("what is idle stays reserved", [tenant("x", 30), tenant("y", 70, **IDLE)], {"x": 6, "y": 14}),
    (
        "who may burst gets what is idle",
        [tenant("x", 30, "burst"), tenant("y", 70, **IDLE)],
        {"x": 20, "y": 0},
    ),
    (
        "idle time is lent by weight",
        [tenant("x", 20, "burst", weight=3), tenant("y", 20, "burst")],
        {"x": 13, "y": 7},
    ),
    (
        "without a part of its own it gets what is left",
        [tenant("x", 60), tenant("y"), tenant("z")],
        {"x": 12, "y": 4, "z": 4},
    ),
]


@pytest.mark.parametrize(
    ("tenants", "wanted"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_windows_of_a_period(tenants: list[Tenant], wanted: dict[str, float]) -> None:
    assert lengths(*tenants) == wanted


def test_without_limits_nobody_waits() -> None:
    _, windows = plan(Wheel(), [tenant("x"), tenant("y", policy="none")], 0)
    assert windows["x"].open
    assert windows["y"].open


def test_a_long_kernel_is_paid_for_by_later_windows() -> None:
    wheel, _ = plan(Wheel(), [tenant("x", 50), tenant("y", 50)], 0)
    after = [tenant("x", 50, used=200 * MS), tenant("y", 50)]
    wheel, windows = plan(wheel, after, 200 * MS)
    assert windows["x"].length == 0
    assert windows["y"].length == PERIOD
    assert wheel.owed["x"] == -90 * MS
    assert wheel.owed["y"] == 110 * MS


def test_idle_time_is_kept_for_one_period() -> None:
    wheel, _ = plan(Wheel(), [tenant("x", 50, **IDLE)], 0)
    wheel, _ = plan(wheel, [tenant("x", 50)], 10_000 * MS)
    assert wheel.owed["x"] == PERIOD // 2


def test_lent_time_makes_no_debt() -> None:
    wheel, windows = plan(Wheel(), [tenant("x", 20, "burst")], 0)
    assert windows["x"].length == PERIOD
    wheel, windows = plan(wheel, [tenant("x", 20, "burst", used=PERIOD)], PERIOD)
    assert wheel.owed["x"] == PERIOD // 5


def test_all_cards_of_a_container_run_together() -> None:
    pair = Tenant("pair", ("a", "b"), 50, wants=True)
    others = [Tenant("one", ("a",), 50, wants=True), Tenant("other", ("b",), 50, wants=True)]
    _, windows = plan(Wheel(), [*others, pair], 0)
    assert windows["pair"] == Window(0, PERIOD // 2)
    assert windows["one"] == windows["other"] == Window(PERIOD // 2, PERIOD // 2)


TENANTS = st.lists(
    st.builds(
        Tenant,
        key=st.text("abcdef", min_size=1, max_size=3),
        cards=st.sets(st.sampled_from("xyz"), min_size=1).map(lambda found: tuple(sorted(found))),
        compute=st.integers(0, 100),
        policy=st.sampled_from(["fixed", "burst", "none"]),
        weight=st.integers(1, 5),
        offline=st.booleans(),
        wants=st.booleans(),
        used=st.integers(0, 10**9),
    ),
    max_size=6,
    unique_by=lambda one: one.key,
)


@given(rounds=st.lists(st.tuples(TENANTS, st.integers(0, 10**9)), max_size=4))
def test_windows_of_a_card_never_overlap(rounds: list[tuple[list[Tenant], int]]) -> None:
    wheel = Wheel()
    for tenants, elapsed in rounds:
        wheel, windows = plan(wheel, tenants, elapsed)
        for card in "xyz":
            held = sorted(
                (windows[one.key].offset, windows[one.key].length)
                for one in tenants
                if card in one.cards and not windows[one.key].open
            )
            ends = [offset + length for offset, length in held]
            assert all(end <= PERIOD for end in ends)
            assert all(end <= held[i + 1][0] for i, end in enumerate(ends[:-1]) if held[i + 1][1])
        assert all(-MOST_DEBT <= owed <= MOST_OWED for owed in wheel.owed.values())


OFFLINE_CASES = [
    (
        "offline ones get what online ones leave",
        [tenant("on", 60), tenant("off", 0, offline=True)],
        {"on": 12, "off": 8},
    ),
    (
        "they get all of it while online ones are idle",
        [tenant("on", 60, **IDLE), tenant("off", 0, offline=True)],
        {"on": 0, "off": 20},
    ),
    (
        "a fixed offline share is a cap",
        [tenant("on", 60), tenant("off", 10, offline=True)],
        {"on": 12, "off": 2},
    ),
    (
        "online ones come first where both do not fit",
        [tenant("off", 80, offline=True), tenant("on", 60)],
        {"on": 12, "off": 8},
    ),
]


@pytest.mark.parametrize(
    ("tenants", "wanted"),
    [case[1:] for case in OFFLINE_CASES],
    ids=[case[0] for case in OFFLINE_CASES],
)
def test_windows_of_offline_shares(tenants: list[Tenant], wanted: dict[str, float]) -> None:
    assert lengths(*tenants) == wanted


BUSY = Pressure(0.8)
MARKS = [
    ("busy beyond the high mark pauses", BUSY, 100 * MS, 0, True),
    ("an online share that falls behind pauses", BUSY, 50 * MS, 11 * MS, True),
    ("between the marks a pause stays", Pressure(0.8, paused=True), 80 * MS, 0, True),
    ("between the marks work goes on", BUSY, 80 * MS, 0, False),
    ("below the low marks it goes on again", Pressure(0.8, paused=True), 10 * MS, 0, False),
    ("not while somebody is behind", Pressure(0.8, paused=True), 10 * MS, 5 * MS, True),
]


@pytest.mark.parametrize(
    ("before", "used", "behind", "paused"),
    [case[1:] for case in MARKS],
    ids=[case[0] for case in MARKS],
)
def test_water_marks(before: Pressure, used: int, behind: int, paused: bool) -> None:
    assert pressed(before, used, behind, 100 * MS).paused is paused


def test_paused_shares_run_nowhere() -> None:
    wheel = Wheel(pressure={"a": Pressure(1.0, paused=True)})
    found = lengths(tenant("on", 50), tenant("off", 0, offline=True), wheel=wheel)
    assert found == {"on": 10, "off": 0}
