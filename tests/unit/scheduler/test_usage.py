"""A queue's status counts what waits in it and what its placed pods take."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import draw, gang, pod

from lockstep.api.core import Pod
from lockstep.api.gang import Gang
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.usage import Usage, by_queue

TEAM = {"labels": {"lockstep.dev/queue": "team"}}


def member(i: int, **more: Any) -> Pod:
    return pod(f"g-{i}", gpus=2, cpu="1500m", gang="g", **more)


@pytest.mark.parametrize(
    ("gangs", "pods", "expected"),
    [
        ([], [], {}),
        ([gang("g", minMember=1)], [], {"default": (1, 0, {})}),
        (
            [gang("g", minMember=2, queue="team")],
            [member(0), member(1)],
            {"team": (1, 0, {})},
        ),
        (
            [gang("g", minMember=2, queue="team")],
            [member(0, on="a1"), member(1, on="a2")],
            {"team": (0, 1, {"cpu": 3000, "nvidia.com/gpu": 4})},
        ),
        (  # one that ended holds nothing
            [gang("g", minMember=2, queue="team")],
            [member(0, on="a1"), member(1, on="a2", phase="Succeeded")],
            {"team": (0, 1, {"cpu": 1500, "nvidia.com/gpu": 2})},
        ),
        (  # pods on their own are in the queue that they name, or in the default one
            [],
            [pod("a", gpus=1, on="a1"), pod("b", gpus=1), pod("c", gpus=1, **TEAM)],
            {"default": (1, 1, {"nvidia.com/gpu": 1}), "team": (1, 0, {})},
        ),
    ],
)
def test_usage(
    gangs: list[Gang], pods: list[Pod], expected: dict[str, tuple[int, int, dict[str, int]]]
) -> None:
    cluster = draw(Cluster(), "s/a: a1:8 a2:8")
    for one in gangs:
        cluster.set_gang(one)
    for one in pods:
        cluster.set_pod(one)
    found = {name: (u.pending, u.placed, u.used) for name, u in by_queue(cluster).items()}
    assert found == expected


def test_what_is_written_reads_as_quantities_and_drops_what_is_not_used_any_more() -> None:
    used = {"cpu": 2500, "memory": 3 << 30, "nvidia.com/gpu": 8, "odd": 5}
    assert Usage(1, 2, used).status({"rdma/hca": 1, "cpu": 1}) == {
        "pending": 1,
        "running": 2,
        "used": {
            "cpu": "2500m",
            "memory": "3072Mi",
            "nvidia.com/gpu": 8,
            "odd": 5,
            "rdma/hca": None,
        },
    }
    assert Usage(used={"cpu": 2000}).status({})["used"] == {"cpu": 2}
