"""By what a share is held: each value does what it says, or is refused with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.device_claims import add_node

from lockstep.api.core import Pod
from lockstep.api.wire import convert
from lockstep.devices.core.model import Card
from lockstep.nodes.process import spec
from lockstep.nodes.process.environment import ConfigError
from lockstep.nodes.process.shares import Shares, taken
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster

CARD = Card(index=0, uuid="GPU-0", memory=81920)
SHARE = {"lockstep.dev/gpu-compute": 30, "lockstep.dev/gpu-memory": 2048}


def body(name: str, isolation: str, limits: dict[str, Any] = SHARE) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": name}
    main = {"name": "main", "resources": {"limits": limits}}
    given = {"lockstep.dev/gpu-isolation": isolation} if isolation else {}
    return {
        "metadata": {**meta, "annotations": given},
        "spec": {"schedulerName": "lockstep", "containers": [main]},
    }


def pod(name: str, isolation: str) -> spec.Pod:
    return convert(body(name, isolation), spec.Pod)


def enter(tmp_path: Path, isolation: str) -> Any:
    one = pod("p", isolation)
    shares = Shares(tmp_path / "shares", [CARD], mounts=True)
    return shares.enter(one, one.spec.containers[0], [0], None)


def test_time_slices_hold_nothing_and_say_so(tmp_path: Path) -> None:
    entered = enter(tmp_path, "timeslice")
    assert not entered.mounts and not entered.variables
    assert "neither memory nor compute is held" in entered.remark


def test_mps_limits_each_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "pipes"))
    with pytest.raises(ConfigError, match="nvidia-cuda-mps-control -d"):
        enter(tmp_path, "mps")
    (tmp_path / "pipes").mkdir()
    (tmp_path / "pipes/control").touch()
    entered = enter(tmp_path, "mps")
    assert dict(entered.variables) == {
        "CUDA_MPS_PIPE_DIRECTORY": "/run/lockstep/mps",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "30",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=2048M",
    }
    assert [one["source"] for one in entered.mounts] == [str(tmp_path / "pipes")]


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ("", "", set()),
        ("lease", "", set()),
        ("mps", "mps", set()),
        ("mps", "", {0}),
        ("timeslice", "lease", {0}),
        ("whole", "", {0}),
        ("", "whole", {0}),
    ],
)
def test_mechanisms_do_not_mix_on_a_card(mine: str, theirs: str, expected: set[int]) -> None:
    assert taken(pod("p", mine), [(pod("q", theirs), [0])], [CARD]) == expected


def test_a_whole_card_is_no_other_pods() -> None:
    cluster = Cluster()
    add_node(cluster, "a", 2)
    for name, isolation in (("whole", "whole"), ("shares", ""), ("also", "whole")):
        cluster.set_pod(convert(body(name, isolation), Pod))
    decider, found = Decider(cluster), {}
    for moment in range(8):
        for placement in decider.decide(float(moment)).placements:
            found |= {one.member.name: one.spot.gpus for one in placement.assignments}
    assert len(found) == 2
    assert sorted(found.values()) == [1, 2]
    assert cluster.pods["default", "whole"].shape.gpus == 1
