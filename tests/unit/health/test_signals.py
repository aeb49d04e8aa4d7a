"""Counters and states of devices become findings: when they grow, and when they last."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.health import signals
from lockstep.health.core.signals import RISES, Watched


def told(*steps: tuple[float, dict[str, float]]) -> list[tuple[float, str, str]]:
    watched = Watched("gpu/1")
    return [(at, one.cause, one.action) for at, values in steps for one in watched.look(values, at)]


@pytest.mark.parametrize("rise", RISES, ids=lambda rise: f"{rise.name} by {rise.by}")
def test_a_counter_that_grows_by_so_much_is_told(rise: object) -> None:
    name, by, cause = rise.name, rise.by, rise.cause  # type: ignore[attr-defined]
    assert told((0, {name: 500}), (5, {name: 500 + by}))[0][1] == cause
    below = told((0, {name: 500}), (5, {name: 500 + by - 1}))
    assert cause not in [one[1] for one in below]


def test_what_was_counted_before_the_agent_started_is_not_told() -> None:
    assert told((0, {"ecc_volatile_uncorrected": 7}), (5, {"ecc_volatile_uncorrected": 7})) == []


def test_a_counter_that_began_anew_counts_from_nothing() -> None:
    assert told((0, {"link_downed": 90}), (5, {"link_downed": 1})) != []


def test_growth_of_more_than_an_hour_ago_is_forgotten() -> None:
    steps = [(hour * 3601.0, {"symbol_error": hour * 9.0}) for hour in range(5)]
    assert told(*steps) == []


@pytest.mark.parametrize(
    ("values", "cause", "action", "lasts"),
    [
        ({"remap_failure": 1}, "the remapping of memory rows failed", "isolate_node", 0),
        ({"remap_pending": 1}, "a remapping of memory rows waits for a reset", "observe", 0),
        ({"throttle": 0x40}, "the GPU is slowed down", "observe", 60),
        (
            {"pcie_width": 8, "pcie_width_max": 16},
            "the PCIe link is narrower than it can be",
            "isolate_node",
            60,
        ),
        (
            {"pcie_generation": 3, "pcie_generation_max": 5, "utilization": 90},
            "the PCIe link is slower than it can be",
            "isolate_node",
            60,
        ),
        ({"nvlinks_up": 17, "nvlinks": 18}, "NVLinks are down", "reset_gpu", 60),
        (
            {"files_used": 99, "files_max": 100},
            "the node runs out of file descriptors",
            "isolate_node",
            60,
        ),
        ({"fabric_state": 1}, "the fabric manager does not run", "isolate_node", 60),
        ({"fabric_state": 2}, "the fabric manager does not run", "isolate_node", 60),
    ],
)
def test_a_state_is_told_once_it_has_lasted(
    values: dict[str, float], cause: str, action: str, lasts: float
) -> None:
    steps = [(at, values) for at in (0.0, 30.0, 59.0, 60.0, 61.0, 90.0)]
    assert told(*steps) == [(lasts, cause, action)]


@pytest.mark.parametrize(
    "values",
    [
        {"throttle": 0x01 | 0x04},
        {"pcie_width": 16, "pcie_width_max": 16},
        {"pcie_generation": 1, "pcie_generation_max": 5, "utilization": 0},
        {"nvlinks_up": 0, "nvlinks": 18},
        {"files_used": 9, "files_max": 100},
        {"remap_failure": 0, "remap_pending": 0},
        {},
        {"fabric_state": 0},
        {"fabric_state": 3},
    ],
    ids=[
        "idle or a power cap",
        "full width",
        "a link that sleeps",
        "no links by design",
        "few files",
        "no remapping",
        "a card that says nothing of a fabric",
        "a card without a fabric",
        "a card of a fabric",
    ],
)
def test_what_is_in_good_order_is_not_told(values: dict[str, float]) -> None:
    assert told((0, values), (100, values)) == []


def test_a_state_that_went_is_told_again_when_it_returns() -> None:
    bad, good = {"remap_failure": 1.0}, {"remap_failure": 0.0}
    assert [at for at, *_ in told((0, bad), (5, good), (10, bad))] == [0, 10]


def test_ports_and_descriptors_are_read_from_the_trees(tmp_path: Path) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "hw_counters").mkdir()
    (port / "counters/link_downed").write_text("3\n")
    (port / "counters/symbol_error").write_text("N/A (no PMA)\n")
    (port / "hw_counters/local_ack_timeout_err").write_text("12\n")
    (tmp_path / "sys/class/net/ens1").mkdir(parents=True)
    (tmp_path / "sys/class/net/ens1/carrier_changes").write_text("4\n")
    assert signals.port_counters("mlx5_0", ["ens1"], tmp_path) == {
        "link_downed": 3.0,
        "local_ack_timeout_err": 12.0,
        "carrier_changes": 4.0,
    }
    (tmp_path / "proc/sys/fs").mkdir(parents=True)
    (tmp_path / "proc/sys/fs/file-nr").write_text("9000\t0\t10000\n")
    assert signals.descriptors(tmp_path) == {"files_used": 9000.0, "files_max": 10000.0}


NO_MANAGER = "the fabric manager does not run"


@pytest.mark.parametrize(
    ("states", "over"),
    [
        ([3, 3, 3], [0]),
        ([1, 2, 3, 3], [2]),
        ([3, 1, 3], [0, 2]),
        ([1, 2, 1], []),
        ([0, 0], []),
        ([None, None], []),
    ],
    ids=["from the start", "once it registers", "again", "not yet", "no fabric", "unknown"],
)
def test_a_registered_card_ends_its_finding_at_once(
    states: list[int | None], over: list[int]
) -> None:
    part = signals.SignalsPart(None, "n", dict)  # type: ignore[arg-type]
    readings = [{"gpu/2": {} if one is None else {"fabric_state": float(one)}} for one in states]
    found = [(at, part.over(one)) for at, one in enumerate(readings)]
    assert [(at, keys) for at, keys in found if keys] == [
        (at, {(NO_MANAGER, "gpu/2")}) for at in over
    ]


def test_a_missing_source_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    expected = {"gpu/0": "NVML", "nic/0": "counters in sysfs"}
    part = signals.SignalsPart(None, "n", dict, lambda: expected)  # type: ignore[arg-type]
    for _ in range(3):
        assert not list(part.look({"gpu/0": {"throttle": 0}}, 0.0))
    assert [r.message for r in caplog.records] == [
        "nic/0: counters in sysfs cannot be read: its faults are not seen there"
    ]
