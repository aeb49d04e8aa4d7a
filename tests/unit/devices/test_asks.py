"""What containers ask for of shared cards, the front on a node, and metrics of shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.api.containers import ResourceRequirements
from lockstep.devices.sharing import front
from lockstep.devices.sharing.accounts import Accounts, metered
from lockstep.devices.sharing.core.asks import MIB, Ask, BadAsk, asked
from lockstep.devices.sharing.core.exposition import Use, exposition
from lockstep.devices.sharing.shelf import Grant, Shelf

MEMORY, COMPUTE = "lockstep.dev/gpu-memory", "lockstep.dev/gpu-compute"

ASKS: list[tuple[dict[str, Any], dict[str, str], Ask | None]] = [
    ({}, {}, None),
    ({"nvidia.com/gpu": 1}, {}, None),
    ({MEMORY: 2048}, {}, Ask(2048 * MIB, 0)),
    ({MEMORY: "2Gi"}, {}, Ask(2048 * MIB, 0)),
    ({COMPUTE: "30"}, {}, Ask(0, 30)),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-policy": "burst"}, Ask(0, 30, "burst")),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-class": "offline"}, Ask(0, 30, offline=True)),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-isolation": "lease"}, Ask(0, 30)),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-isolation": "mps"}, Ask(0, 30, isolation="mps")),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-isolation": "timeslice"}, Ask(0, 30, isolation="timeslice")),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-isolation": "whole"}, None),
]


@pytest.mark.parametrize(("limits", "annotations", "wanted"), ASKS)
def test_a_share_is_read(
    limits: dict[str, Any], annotations: dict[str, str], wanted: Ask | None
) -> None:
    assert asked(ResourceRequirements(limits=limits), annotations) == wanted


BAD: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({COMPUTE: 120}, {}, "given 120; a container takes at most 100"),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-policy": "soft"}, "one of fixed, burst, none"),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-isolation": "mig"}, "nvidia.com/mig-1g.18gb"),
    ({COMPUTE: 30}, {"lockstep.dev/gpu-isolation": "soft"}, "one of lease, mps, timeslice, whole"),
]


@pytest.mark.parametrize(("limits", "annotations", "told"), BAD)
def test_a_share_that_cannot_be_held_is_named(
    limits: dict[str, Any], annotations: dict[str, str], told: str
) -> None:
    with pytest.raises(BadAsk, match=told):
        asked(ResourceRequirements(limits=limits), annotations)


def test_the_front_stands_before_the_driver(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "front", tmp_path / "driver"
    for place in (ours, theirs):
        place.mkdir()
        (place / front.CUDA).touch()
    path = f"{ours}:{theirs}"
    found = front.find({front.VARIABLE: str(ours), "LD_LIBRARY_PATH": path})
    assert (found.directory, found.cuda) == (ours, theirs / front.CUDA)


def test_a_node_without_the_front_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(front.NoFront, match="make -C native front"):
        front.find({front.VARIABLE: str(tmp_path)})


def use(**more: Any) -> Use:
    known = dict.fromkeys(("memory", "busy", "throttled", "refused", "unknown", "fallback"), 0)
    about = {"namespace": "ns", "pod": "p", "container": "c", "uuid": "GPU-1", "number": 0}
    granted = {"limit": 2**31, "compute": 30, "policy": "fixed"}
    return Use(**{**known, **about, **granted, **more})  # type: ignore[arg-type]


def test_metrics_bear_the_names_of_both_systems() -> None:
    text = exposition([use(memory=2**20, busy=3 * 10**9, recent=28)]).decode()
    ours = 'namespace="ns",pod="p",container="c",number="0",UUID="GPU-1"'
    old = 'podnamespace="ns",podname="p",ctrname="c",vdeviceid="0",deviceuuid="GPU-1"'
    lines = text.splitlines()
    assert f"lockstep_share_busy_seconds_total{{{ours}}} 3" in lines
    assert f"vGPU_device_memory_usage_in_bytes{{{old}}} 1048576" in lines
    assert f"Device_utilization_desc_of_container{{{old}}} 28" in lines


def test_without_shares_there_are_no_metrics_of_them() -> None:
    assert exposition([]) == b""


def test_use_is_told_for_the_time_since_the_last_look() -> None:
    accounts = Accounts()
    accounts.usage([use(busy=0)], [], 10.0)
    accounts.usage([use(busy=600_000_000)], [], 12.0)
    assert [one.recent for one in accounts.with_recent([use()])] == [30]
    assert metered([use(busy=3), use(busy=4, pod="q")]) == {"GPU-1": 7}


def test_a_shelf_gives_back_what_was_put_there(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shares")
    grant = Grant(namespace="ns", pod="p", container="c", uid="u", cards=["GPU-1"], memory=5)
    path = shelf.put(grant)
    (tmp_path / "shares/u/broken.json").write_text("{")
    assert list(shelf.grants()) == [(grant, path)]
    shelf.drop("u")
    assert list(shelf.grants()) == []
