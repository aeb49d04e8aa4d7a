"""Nodes on the map, queues as a tree, and waste."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.core import Node, NodeSpec, NodeStatus, Pod, PodSpec, PodStatus
from lockstep.api.device_usage import DeviceUsage, GpuUsage
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.node_health import Finding, NodeHealth, NodeHealthSpec, NodeHealthStatus
from lockstep.api.queue import Queue, QueueSpec, QueueStatus
from lockstep.console.views import cluster, queue_tree, waste

READY = Condition(type="Ready", status="True")


def node(name: str = "n", *, gpus: int = 4, cordoned: bool = False, ready: bool = True) -> Node:
    labels = {"spine": "s0", "leaf": "l0"}
    conditions = [READY] if ready else []
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(unschedulable=cordoned),
        status=NodeStatus(capacity={"nvidia.com/gpu": gpus}, conditions=conditions),
    )


def pod(name: str, namespace: str, gpus: str, job: str = "", phase: Any = "Running") -> Pod:
    labels = {"lockstep.dev/job": job} if job else {}
    told = {"lockstep.dev/gpus": gpus}
    meta = ObjectMeta(name=name, namespace=namespace, labels=labels, annotations=told)
    return Pod(metadata=meta, spec=PodSpec(node_name="n"), status=PodStatus(phase=phase))


def test_gpus_are_shown_as_runs_without_foreign_owners_names() -> None:
    pods = [pod("a-0", "mine", "0,1", "a"), pod("b-0", "theirs", "3", "b")]
    told = cluster.told(cluster.row(node(), pods, None, None), {"mine"}.__contains__)
    assert told["held"] == [["mine/a", 2], ["", 1], ["?", 1]]
    assert (told["free"], told["pods"], told["at"][1:3]) == (1, 2, ["s0", "l0"])
    assert "theirs" not in str(told)


@pytest.mark.parametrize("gpus", ["", "x", "9", "0,,1,-1", "٣", "0,0"])
def test_odd_indices_count_no_gpu_twice(gpus: str) -> None:
    row = cluster.row(node(), [pod("a", "a", gpus)], None, None)
    assert len(row.held) == 4
    assert row.free >= 2


def test_a_pod_that_is_over_holds_nothing() -> None:
    row = cluster.row(node(), [pod("a", "a", "0", phase="Succeeded")], None, None)
    assert (row.free, row.pods) == (4, ())


HURT = NodeHealth(
    metadata=ObjectMeta(name="n"),
    spec=NodeHealthSpec(findings=[Finding(cause="Xid 79", device="gpu/1")]),
    status=NodeHealthStatus(fenced=["gpu/1", "nic/0", "gpu/x"]),
)


@pytest.mark.parametrize(
    ("there", "health", "state", "out"),
    [
        (node(), None, "Ready", 0),
        (node(ready=False), None, "NotReady", 4),
        (node(cordoned=True), None, "Cordoned", 4),
        (node(), HURT, "Degraded", 1),
        (
            node(),
            NodeHealth(metadata=ObjectMeta(name="n"), status=NodeHealthStatus(tainted=True)),
            "Faulty",
            4,
        ),
    ],
)
def test_what_is_out_of_use_is_not_free(
    there: Node, health: NodeHealth | None, state: str, out: int
) -> None:
    row = cluster.row(there, [], None, health)
    found = cluster.totals([row])
    assert (row.state, found["out"], found["free"]) == (state, out, 4 - out)


def test_waste_is_what_use_leaves_of_measured_gpus() -> None:
    usage = DeviceUsage(
        metadata=ObjectMeta(name="n"),
        gpus=[GpuUsage(index=i, utilization=u) for i, u in enumerate((100, 50, 0))],
    )
    pods = [pod("a-0", "a", "0,1", "busy"), pod("b-0", "a", "2,3", "idle")]
    page = waste.page([cluster.row(node(), pods, usage, None)], lambda _: True)
    assert page.order == ["a/idle", "a/busy"]
    assert page.rows["a/idle"] == {
        "owner": "a/idle", "gpus": 2, "measured": 1, "use": 0, "wasted": 1.0
    }  # fmt: skip
    assert (page.rows["a/busy"]["wasted"], page.facts["idle"]) == (0.5, 1)
    hidden = waste.page([cluster.row(node(), pods, usage, None)], lambda _: False)
    assert [hidden.rows[key]["gpus"] for key in hidden.order] == [4]


NAMES = st.sampled_from("abcde")


@given(st.dictionaries(NAMES, st.none() | NAMES))
def test_every_queue_stands_once_in_the_tree(parents: dict[str, str | None]) -> None:
    there = {
        name: Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(parent=parent))
        for name, parent in parents.items()
    }
    found = list(queue_tree.ordered(there))
    assert sorted(name for name, _ in found) == sorted(parents)
    depths = dict(found)
    for name, parent in parents.items():
        if depths[name] and parent in depths:
            assert depths[name] == depths[parent] + 1


def test_a_queue_tells_gpus_of_single_models_too() -> None:
    spec = QueueSpec(guaranteed={"nvidia.com/gpu/A100": "2", "nvidia.com/gpu/H100": 3})
    status = QueueStatus(used={"nvidia.com/gpu": "4", "cpu": "9"})
    row = queue_tree.row(Queue(metadata=ObjectMeta(name="q"), spec=spec, status=status), 0)
    assert (row["guaranteed"], row["used"], row["limit"]) == (5, 4, None)
