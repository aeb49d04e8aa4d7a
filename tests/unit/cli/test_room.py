"""Jobs that surely have room: never where the scheduler says that they cannot start."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.core import Node
from lockstep.api.queue import Queue
from lockstep.cli.room import surely_fits
from lockstep.cli.whatif import never_starts

Json = dict[str, Any]
OWN = {"key": "lockstep.dev/node", "operator": "Exists"}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [OWN]}]
        }
    }
}


def node(name: str, cpu: int = 4, **more: Any) -> Json:
    labels = {"kubernetes.io/hostname": name, "lockstep.dev/node": "process"}
    allocatable = {"cpu": str(cpu), "memory": "8Gi", "pods": "20", **more.get("allocatable", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": more.get("labels", labels)},
        "spec": more.get("spec", {}),
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": more.get("ready", "True")}],
        },
    }


def role(name: str, replicas: int, pod: Json | None = None, **requests: str) -> Json:
    container = {"name": "main", "image": "none", "command": ["true"]}
    container |= {"resources": {"requests": requests}} if requests else {}
    spec = {"containers": [container], "affinity": AFFINITY, **(pod or {})}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def job(*roles: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "j"},
        "spec": {"framework": "plain", "roles": list(roles), **spec},
    }


def queue(name: str = "default", **spec: Any) -> Json:
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def fits(wanted: Json, nodes: list[Json], queues: list[Json] | None = None) -> bool:
    known = msgspec.convert([queue()] if queues is None else queues, list[Queue])
    return surely_fits(
        wanted,
        msgspec.convert(nodes, list[Node]),
        {one.metadata.name: one for one in known},
    )


TAINT = {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("wanted", "nodes", "expected"),
    [
        (job(role("worker", 1)), [node("a")], True),
        (job(role("worker", 4, cpu="2")), [node("a"), node("b")], True),
        (job(role("worker", 5, cpu="2")), [node("a"), node("b")], False),
        (job(role("a", 1, cpu="3"), role("b", 1, cpu="3")), [node("a")], False),
        (job(role("worker", 21)), [node("a")], False),
        (job(role("worker", 1, **{"nvidia.com/gpu": "1"})), [node("a")], False),
        (job(role("worker", 1)), [node("a", spec=TAINT)], False),
        (job(role("worker", 1)), [node("a", spec={"unschedulable": True})], False),
        (job(role("worker", 1)), [node("a", ready="Unknown")], False),
        (job(role("worker", 1)), [node("a", labels={})], False),
        (job(role("worker", 1, {"nodeSelector": {"a": "b"}})), [node("a")], False),
        (job(role("worker", 1, {"affinity": {}})), [node("a")], False),
        (job(role("worker", 1), topology={"required": "leaf"}), [node("a")], False),
        (job(role("worker", 1), priorityClassName="high"), [node("a")], False),
        (job(role("worker", 1), framework="mpi"), [node("a")], False),
        (job(role("worker", 1), queue="other"), [node("a")], False),
        (job(role("worker", 1)), [], False),
    ],
)
def test_only_what_is_plain_and_fits_is_sure(
    wanted: Json, nodes: list[Json], expected: bool
) -> None:
    assert fits(wanted, nodes) is expected


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        ([queue()], True),
        ([queue(limit={"cpu": "1"})], False),
        ([queue(parent="top"), queue("top")], True),
        ([queue(parent="top"), queue("top", limit={"cpu": "1"})], False),
        ([queue(parent="top")], False),
        ([queue(parent="default")], False),
    ],
)
def test_a_queue_with_a_limit_is_left_to_the_scheduler(queues: list[Json], expected: bool) -> None:
    assert fits(job(role("worker", 1)), [node("a")], queues) is expected


amounts = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["500m", "1", "3"]), "memory": st.just("3Gi")}
)
roles = st.lists(st.tuples(st.integers(1, 6), amounts), min_size=1, max_size=2)
nodes_ = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["", "taint", "unready", "cordoned"])),
    min_size=1,
    max_size=3,
)


@given(roles, nodes_)
def test_the_scheduler_never_says_otherwise(
    drawn: list[tuple[int, dict[str, str]]], there: list[tuple[int, str]]
) -> None:
    wanted = job(*(role(f"r{i}", n, **amount) for i, (n, amount) in enumerate(drawn)))
    states: dict[str, Json] = {
        "": {},
        "taint": {"spec": TAINT},
        "unready": {"ready": "False"},
        "cordoned": {"spec": {"unschedulable": True}},
    }
    ground = [node(f"n{i}", cpu, **states[state]) for i, (cpu, state) in enumerate(there)]
    if fits(wanted, ground):
        assert never_starts([*ground, queue()], [wanted], "default") == []
