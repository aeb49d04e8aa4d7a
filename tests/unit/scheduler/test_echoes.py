"""What the API server says of a placement that was assumed: it is no news unless it says more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import draw, gang, places, pod

from lockstep.api.core import Pod
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

GANG = WorkloadKey("Gang", "default", "g")
MEMBERS = ("g-0", "g-1")


def placed() -> tuple[Cluster, dict[str, Any]]:
    """A cluster with a gang that was just placed, and what an echo of each member says."""
    cluster = draw(Cluster(), "s/l: a:2 b:8")
    cluster.set_gang(gang("g", minMember=len(MEMBERS)))
    for name in MEMBERS:
        cluster.set_pod(pod(name, gpus=1, gang="g"))
    Decider(cluster).decide(0.0)
    assert places(cluster) == dict.fromkeys(MEMBERS, "a")
    cluster.touched.clear()
    held = {name: cluster.pods["default", name].gpus for name in MEMBERS}
    return cluster, {name: str(mask.bit_length() - 1) for name, mask in held.items()}


def echo(name: str, gpu: str, **more: Any) -> Pod:
    return pod(name, **{"gpus": 1, "gang": "g", "on": "a", "held": gpu, **more})


def test_only_the_echo_that_completes_the_gang_has_consequences() -> None:
    cluster, held = placed()
    freed, workload = cluster.freed, cluster.workloads[GANG]
    pod_groups = workload.pod_groups
    assert not workload.whole
    assert not cluster.set_pod(echo("g-0", held["g-0"]))
    assert not cluster.touched
    assert not workload.whole
    assert cluster.set_pod(echo("g-1", held["g-1"]))
    assert cluster.touched == {GANG}
    assert workload.whole
    assert workload.pod_groups is pod_groups
    assert cluster.freed == freed
    assert not any(member.assumed for member in cluster.pods.values())


OTHERS: dict[str, dict[str, Any]] = {
    "another node": {"on": "b"},
    "another device": {"held": "7", "on": "b"},
    "another size": {"gpus": 2},
    "another gang": {"gang": "h"},
    "another label": {"labels": {"app": "x"}},
    "another incarnation": {"uid": "u2"},
    "another priority": {"priority": 7},
    "it runs": {"phase": "Running"},
    "it ends": {"phase": "Failed"},
    "it is being deleted": {"terminating": True},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_an_echo_with_further_changes_is_applied_in_full(change: dict[str, Any]) -> None:
    cluster, held = placed()
    said = [echo("g-0", held["g-0"], **change), echo("g-1", held["g-1"])]
    assert cluster.set_pod(said[0])
    assert GANG in cluster.touched
    cluster.set_pod(said[1])
    fresh = draw(Cluster(), "s/l: a:2 b:8")
    fresh.set_gang(gang("g", minMember=len(MEMBERS)))
    for one in said:
        fresh.set_pod(one)
    assert places(cluster) == places(fresh)
    for name, row in fresh.table.rows.items():
        there = cluster.table.rows[name]
        assert cluster.table.free[:, there].tolist() == fresh.table.free[:, row].tolist()
        assert cluster.table.free_devices(there) == fresh.table.free_devices(row)
    assert [m.total for m in cluster.workloads[GANG].pod_groups] == [
        m.total for m in fresh.workloads[GANG].pod_groups
    ]


def test_a_gangs_status_changes_nothing_derived_from_its_wishes() -> None:
    cluster, _ = placed()
    workload = cluster.workloads[GANG]
    pod_groups = workload.pod_groups
    cluster.set_gang(gang("g", minMember=len(MEMBERS)))
    assert workload.pod_groups is pod_groups
    cluster.set_gang(gang("g", minMember=1))
    assert workload.pod_groups is not pod_groups
    assert workload.pod_groups[0].group.minimum == 1


def test_a_single_pod_is_finished_once_its_node_is_shown() -> None:
    cluster = draw(Cluster(), "s/l: a:8")
    cluster.set_pod(pod("p", gpus=8))
    decider = Decider(cluster)
    decider.decide(0.0)
    assert cluster.set_pod(pod("p", gpus=8, on="a", held="0,1,2,3,4,5,6,7"))
    decider.decide(1.0)
    assert not cluster.workloads
    assert not decider.pending_queue.all()
    assert places(cluster) == {"p": "a"}
