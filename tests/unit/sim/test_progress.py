"""How fast simulated jobs run, and what of their work is saved."""

import pytest
from tests.support.simulated_jobs import job, simulate, world

from lockstep.api.names import ELAPSED_ANNOTATION, GPU, GPUS_ANNOTATION, SNAPSHOT_ANNOTATION
from lockstep.sim.engine.options import Options
from lockstep.sim.input.faults import Faults


def of_groups(name, *groups, **given):
    """Return a Gang of several groups: ``of_groups("a", ("big", "1x8"), ("small", "1..4x1"))``."""
    parts = [(group, job(name, size, **given)) for group, size in groups]
    for group, part in parts:
        part["spec"]["groups"][0]["name"] = group
    whole = parts[0][1]
    whole["spec"]["groups"] = [part["spec"]["groups"][0] for _, part in parts]
    return whole


@pytest.mark.parametrize(
    ("cluster", "groups", "end"),
    [
        pytest.param("1x8", [("worker", "1..2x8")], 200, id="half of the GPUs"),
        pytest.param("1x8", [("big", "1x4"), ("small", "0..4x1")], 100, id="all of them"),
        pytest.param(
            "1x8", [("big", "1x6"), ("small", "0..4x1")], 125, id="8 of 10 GPUs, 3 of 5 pods"
        ),
        pytest.param(
            "1x8", [("leader", "1x0"), ("worker", "1..2x8")], 200, id="a pod without GPUs is none"
        ),
        pytest.param(
            "1x8", [("worker", "0..1x16"), ("leader", "1x0")], None, id="no GPUs, no progress"
        ),
    ],
)
def test_an_elastic_job_runs_as_fast_as_it_has_gpus(cluster, groups, end):
    work = of_groups("a", *groups, runs=100)
    (life,) = simulate(cluster, work, options=Options(until=10_000)).lives
    assert life.started == 0
    assert life.ended == (end if end is None else pytest.approx(end))


HOUR = 3600
SNAPSHOT = "2026-01-01T10:00:00Z"


def standing(name, node, *, elapsed, saved=None, **spec):
    """Return a job of one pod of 8 GPUs that runs on a node of a snapshot, and its pod."""
    gang = job(name, "1x8", runs=10 * HOUR, **spec)
    gang["metadata"]["annotations"]["lockstep.dev/elapsed"] = str(elapsed)
    gang["status"] = {"phase": "Running", "lastCheckpoint": saved}
    labels = {"lockstep.dev/gang": name, "lockstep.dev/gang-group": "worker"}
    resources = {"limits": {GPU: 8}, "requests": {GPU: 8}}
    containers = [{"name": "main", "resources": resources}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-worker-0",
            "namespace": "default",
            "labels": labels,
            "annotations": {GPUS_ANNOTATION: "0-7"},
        },
        "spec": {"nodeName": node, "schedulerName": "lockstep", "containers": containers},
    }
    return gang, pod


def snapshot(*objects):
    """Return a world of one node that was taken at `SNAPSHOT`, with an important class of jobs."""
    resources = {GPU: 8, "pods": 110}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-0", "annotations": {SNAPSHOT_ANNOTATION: SNAPSHOT}},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return world(node, HIGH, *objects)


HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


@pytest.mark.parametrize(
    ("saved", "spec", "at", "before", "since"),
    [
        pytest.param("2026-01-01T09:50:00Z", {}, 0, 600, 0, id="since it was last saved"),
        pytest.param("2026-01-01T09:50:00Z", {}, 100, 600, 100, id="and since the start"),
        pytest.param("2026-01-01T09:50:00Z", {}, HOUR, 0, 600, id="until it is saved again"),
        pytest.param(None, {}, 0, 2 * HOUR, 0, id="since it began"),
        pytest.param(None, {}, 60, 0, 60, id="what is overdue is saved"),
        pytest.param("2026-01-01T03:00:00Z", {}, 0, 2 * HOUR, 0, id="saved in a life before"),
        pytest.param(None, {"checkpoint": {"interval": "5m"}}, 0, 300, 0, id="as far as it says"),
    ],
)
def test_a_snapshots_unsaved_work_is_lost_with_the_place(saved, spec, at, before, since):
    gang, pod = standing("low", "node-0", elapsed=2 * HOUR, saved=saved, **spec)
    high = job("high", "1x8", at=at, runs=100, priorityClassName="high")
    faults = Faults(restart_cost=0, checkpoint_interval=1800)
    low, _ = simulate(snapshot(pod), gang, high, options=Options(faults=faults)).lives
    assert low.ended == pytest.approx(8 * HOUR + before + since + 100)
    assert low.lost == pytest.approx((before + since) * 8)
    # What was done before the start and is done again is done once in the simulation.
    assert low.useful == pytest.approx((8 * HOUR + before) * 8)


def test_a_snapshot_that_saves_every_step_loses_nothing():
    gang, pod = standing("low", "node-0", elapsed=2 * HOUR)
    high = job("high", "1x8", runs=100, priorityClassName="high")
    faults = Faults(restart_cost=0, checkpoint_interval=0)
    low, _ = simulate(snapshot(pod), gang, high, options=Options(faults=faults)).lives
    assert (low.lost, low.ended) == (0, 8 * HOUR + 100)


def test_a_pods_own_start_time_limits_its_unsaved_work():
    gang, pod = standing("low", "node-0", elapsed=2 * HOUR)
    pod["metadata"]["annotations"][ELAPSED_ANNOTATION] = "60"  # it was evicted and came back
    high = job("high", "1x8", runs=100, priorityClassName="high")
    faults = Faults(restart_cost=0, checkpoint_interval=1800)
    low, _ = simulate(snapshot(pod), gang, high, options=Options(faults=faults)).lives
    assert low.lost == pytest.approx(60 * 8)
