"""Queues share a cluster: a limit holds, and a gang of higher priority takes its place whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.on_cluster import OnCluster

CARD = "example.com/card"
QUEUE = "story-research"


@pytest.fixture
def cards(cluster: OnCluster) -> Iterator[OnCluster]:
    """Two cards on each node, and a queue that may use four of the six."""
    for node in cluster.cluster.record.all_nodes:
        _set_cards(cluster, node.name, "2")
    cluster.apply(
        {
            "apiVersion": "lockstep.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": QUEUE},
            "spec": {"limit": {CARD: 4}, "preemption": "LowerPriority"},
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "story-high"},
            "value": 1000,
        },
    )
    yield cluster
    cluster.kubectl("delete", "trainingjobs.lockstep.dev", "--all")
    cluster.kubectl("delete", f"queues.lockstep.dev/{QUEUE}", "priorityclass/story-high")
    for node in cluster.cluster.record.all_nodes:
        _set_cards(cluster, node.name, None)


def _set_cards(cluster: OnCluster, node: str, amount: str | None) -> None:
    patch = json.dumps({"status": {"capacity": {CARD: amount}}})
    cluster.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)


def gang(
    cluster: OnCluster, name: str, pods: int, cards: int, priority: str = ""
) -> dict[str, Any]:
    main = {
        "name": "main",
        "image": cluster.idle_image,
        "resources": {"limits": {CARD: str(cards)}},
    }
    pod = {
        "terminationGracePeriodSeconds": 0,
        "containers": [main],
        **({"priorityClassName": priority} if priority else {}),
    }
    role = {"name": "worker", "replicas": pods, "template": {"spec": pod}}
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"framework": "plain", "queue": QUEUE, "launcher": "None", "roles": [role]},
    }


def running(cluster: OnCluster, name: str) -> int:
    return sum(
        pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in cluster.pods(f"lockstep.dev/job={name}")
    )


def test_queue_holds_its_limit(cards: OnCluster) -> None:
    cards.apply(gang(cards, "first", 2, 2))
    cards.wait(lambda: running(cards, "first") == 2, 60, "the first gang runs")
    cards.apply(gang(cards, "second", 1, 2))
    told = cards.wait(
        lambda: cards.get("gang", "second").get("status", {}).get("message"), 30, "a reason"
    )
    assert QUEUE in told
    assert running(cards, "second") == 0
    cards.kubectl("delete", "trainingjobs.lockstep.dev", "first")
    cards.wait(lambda: running(cards, "second") == 1, 60, "the second gang takes the room")


def test_higher_priority_takes_the_place_of_a_gang(cards: OnCluster) -> None:
    cards.apply(gang(cards, "low", 2, 2))
    cards.wait(lambda: running(cards, "low") == 2, 60, "the gang of low priority runs")
    cards.apply(gang(cards, "high", 2, 2, priority="story-high"))
    cards.wait(lambda: running(cards, "high") == 2, 60, "the gang of high priority runs")
    assert running(cards, "low") == 0
    cards.kubectl("delete", "trainingjobs.lockstep.dev", "high")
    cards.wait(lambda: running(cards, "low") == 2, 90, "the evicted gang runs again")
