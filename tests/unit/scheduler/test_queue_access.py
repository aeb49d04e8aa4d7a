"""A workload waits in a queue that its namespace may not use, and says who can change that."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support.drawn import Drawn, add, draw, draw_gang, places, pod

from lockstep.api.core import AnyObject
from lockstep.api.queue import Queue
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.placement.preconditions import unmet_precondition
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.namespaces import set_namespace

TEAM = "lockstep.dev/team"
CREATOR = "lockstep.dev/creator"
GROUPS = "lockstep.dev/creator-groups"


def world(spec: dict[str, Any], of: str = "red", here: str = "blue") -> Cluster:
    """A queue ``q`` of a team, and namespace ``default``, where drawn pods are, of another."""
    cluster = draw(Cluster(), "s/l: a:8 b:8")
    set_queue(cluster, spec, of)
    set_space(cluster, here)
    return cluster


def set_queue(cluster: Cluster, spec: dict[str, Any], of: str = "") -> None:
    meta = {"name": "q", "labels": {TEAM: of} if of else {}}
    cluster.set_queue(msgspec.convert({"metadata": meta, "spec": spec}, Queue))


def set_space(cluster: Cluster, team: str) -> None:
    meta = {"name": "default", "labels": {TEAM: team} if team else {}}
    set_namespace(cluster, msgspec.convert({"metadata": meta}, AnyObject))


def gang(creator: str = "") -> Drawn:
    drawn = draw_gang("g: 2x4", queue="q")
    drawn.gang.metadata.annotations.update(signed(creator))
    return drawn


def signed(creator: str) -> dict[str, str]:
    """Return what is on record of a creator such as ``ana in day,night``."""
    user, _, groups = creator.partition(" in ")
    told = {GROUPS: groups.replace(",", "\n")} if groups else {}
    return {CREATOR: user, **told} if user else {}


@pytest.mark.parametrize(
    ("spec", "of", "here", "creator", "placed"),
    [
        ({}, "red", "red", "", True),
        ({}, "red", "blue", "", False),
        ({}, "red", "", "", False),
        ({}, "", "blue", "", True),
        ({"allowed": {}}, "", "blue", "", False),
        ({"allowed": {"namespaces": ["default"]}}, "red", "blue", "", True),
        ({"allowed": {"namespaceSelector": {"matchLabels": {TEAM: "blue"}}}}, "", "blue", "", True),
        ({"allowed": {"users": ["ana"]}}, "red", "blue", "ana", True),
        ({"allowed": {"users": ["ana"]}}, "red", "blue", "ben", False),
        ({"allowed": {"users": ["ana"]}}, "red", "blue", "", False),
        ({"allowed": {"groups": ["night"]}}, "red", "blue", "", False),
        ({"allowed": {"groups": ["night"]}}, "red", "blue", "ana in night", True),
        ({"allowed": {"groups": ["night"]}}, "red", "blue", "ana in day,night", True),
        ({"allowed": {"groups": ["night"]}}, "red", "blue", "ana in day", False),
        ({"allowed": {"groups": ["night"]}}, "red", "blue", "night", False),
    ],
)
@pytest.mark.parametrize("kind", ["gang", "pod"])
def test_gang_is_placed_where_its_queue_lets_it(
    spec: dict[str, Any], of: str, here: str, creator: str, kind: str, *, placed: bool
) -> None:
    cluster = world(spec, of, here)
    if kind == "gang":
        add(cluster, gang(creator))
    else:
        alone = pod("alone", gpus=1, labels={"lockstep.dev/queue": "q"})
        alone.metadata.annotations.update(signed(creator))
        cluster.set_pod(alone)
    Decider(cluster).decide(0.0)
    assert bool(places(cluster)) is placed


@pytest.mark.parametrize("kind", ["Gang", "Pod"])
def test_refusal_says_queue_namespace_and_who_may_change_it(kind: str) -> None:
    cluster = world({})
    add(cluster, gang())
    cluster.set_pod(pod("alone", gpus=1, labels={"lockstep.dev/queue": "q"}))
    key = WorkloadKey(kind, "default", {"Gang": "g", "Pod": "alone"}[kind])
    found = unmet_precondition(cluster, cluster.workloads[key])
    assert found is not None
    assert found.reason == "QueueForbidden"
    assert "namespace default may not use queue q" in found.message
    assert "spec.queue.allowed of Team red" in str(found)


def test_gang_starts_once_let_in_and_stays_when_shut_out() -> None:
    cluster = world({})
    decider = Decider(cluster)
    add(cluster, gang())
    decider.decide(0.0)
    assert not places(cluster)
    set_queue(cluster, {"allowed": {"namespaces": ["default"]}}, "red")
    decider.decide(1.0)
    assert len(places(cluster)) == 2
    set_queue(cluster, {}, "red")
    decider.decide(2.0)
    assert len(places(cluster)) == 2


def test_namespace_that_changes_its_team_changes_its_queues() -> None:
    cluster = world({})
    decider = Decider(cluster)
    add(cluster, gang())
    decider.decide(0.0)
    set_space(cluster, "red")
    decider.decide(1.0)
    assert len(places(cluster)) == 2


@pytest.mark.parametrize(("here", "question"), [("blue", ""), ("red", "; did you mean canary?")])
def test_guessed_name_of_a_queue_tells_none_of_others(here: str, question: str) -> None:
    cluster = draw(Cluster(), "s/l: a:8 b:8")
    meta = {"name": "canary", "labels": {TEAM: "red"}}
    cluster.set_queue(msgspec.convert({"metadata": meta, "spec": {}}, Queue))
    set_space(cluster, here)
    add(cluster, draw_gang("g: 2x4", queue="canari"))
    found = unmet_precondition(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
    assert found is not None
    assert found.message == f"queue canari does not exist{question}"
