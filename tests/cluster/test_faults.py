"""Leaders die, the API server is away, a node is cut off or frozen: no job loses a step."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.support.cluster_training import JOB, newest, ranks
from tests.support.on_cluster import OnCluster
from tools.cluster.cluster import Cluster
from tools.cluster.layout import CONTROL

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.kube.silent_parts import LEADERS

JOBS = 40
AWAY = 60.0
"""Seconds without an API server."""
STEP = re.compile(r"step (\d+) at (\S+)$", re.MULTILINE)


def phases(cluster: OnCluster) -> list[str]:
    jobs = json.loads(cluster.kubectl("get", "trainingjobs.lockstep.dev", "-o", "json"))["items"]
    return [job.get("status", {}).get("phase", "") for job in jobs]


def kill_leader(cluster: OnCluster, lease: str) -> str:
    """Kill the pod that leads, without notice; return its name."""
    shown = ("get", "lease", lease, "-o", "jsonpath={.spec.holderIdentity}")
    leader = cluster.cluster.kubectl("-n", SYSTEM_NAMESPACE, *shown).partition("_")[0]
    words = ("delete", "pod", leader, "--grace-period=0", "--force")
    cluster.cluster.kubectl("-n", SYSTEM_NAMESPACE, *words)
    return leader


@pytest.mark.timeout(900)
def test_leaders_killed_under_load_lose_no_job(cluster: OnCluster) -> None:
    words = ("submit", "plain", "--name", "many", "--array", f"0-{JOBS - 1}", "--no-launcher")
    done = cluster.lockstep(*words, "--image", cluster.lockstep_image(), "--", "sleep", "2")
    assert done.returncode == 0, done.stderr
    for least in (JOBS // 8, JOBS // 2):
        cluster.wait(lambda n=least: phases(cluster).count("Succeeded") >= n, 180, "some are over")
        for lease in LEADERS.values():
            assert kill_leader(cluster, lease)

    def succeeded() -> bool:
        assert "Failed" not in phases(cluster)
        return phases(cluster).count("Succeeded") == JOBS

    cluster.wait(succeeded, 300, f"{JOBS} jobs succeed")
    jobs = json.loads(cluster.kubectl("get", "trainingjobs.lockstep.dev", "-o", "json"))["items"]
    assert {job["status"].get("restarts", 0) for job in jobs} == {0}
    assert len(cluster.pods()) == JOBS, "no pod is made twice"


@contextmanager
def no_api_server(cluster: Cluster) -> Iterator[None]:
    """Stop the API server as a machine that hangs does: its connections stay open."""
    name = ("-x", "kube-apiserver")
    subprocess.run(cluster.inside(CONTROL, "pkill", "-STOP", *name), check=True)
    try:
        yield
    finally:
        subprocess.run(cluster.inside(CONTROL, "pkill", "-CONT", *name), check=True)


def told_on_node(cluster: OnCluster, node: str, pod: str) -> list[float]:
    """Return when a pod's rank stepped, by the log that its kubelet keeps."""
    logs = cluster.cluster.record.machine(node) / "var/log/pods"
    text = "".join(
        one.read_text() for one in sorted(logs.glob(f"{cluster.space}_{pod}_*/main/*.log"))
    )
    return [float(at) for _, at in STEP.findall(text)]


@pytest.mark.timeout(900)
def test_ranks_step_on_while_the_api_server_is_away(training: OnCluster) -> None:
    first = f"{JOB}-worker-0"
    node = ranks(training)[first]
    before = {pod["metadata"]["uid"] for pod in training.pods()}
    with no_api_server(training.cluster):
        gone = time.time()

        def stepped() -> bool:
            return max(told_on_node(training, node, first), default=0) > gone + AWAY

        training.wait(stepped, 2 * AWAY, "the ranks step without an API server")
    reached = newest(training)
    training.wait(lambda: newest(training) > reached + 20, 60, "they step on with it")
    assert {pod["metadata"]["uid"] for pod in training.pods()} == before
    assert training.get("trainingjobs.lockstep.dev", JOB)["status"].get("restarts", 0) == 0
    words = ("submit", "plain", "--name", "after", "--no-launcher", "--image")
    done = training.lockstep(*words, training.lockstep_image(), "--", "true")
    assert done.returncode == 0, done.stderr

    training.wait(lambda: "Succeeded" in phases(training), 120, "a new job runs")


Break = Callable[[Cluster, str, bool], None]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "broken", [Cluster.cut_off, Cluster.freeze_node], ids=["cut-off", "frozen"]
)
def test_rank_leaves_a_node_that_is_silent(training: OnCluster, broken: Break) -> None:
    first = f"{JOB}-worker-0"
    lost, reached = ranks(training)[first], newest(training)
    broken(training.cluster, lost, True)
    try:
        training.wait(
            lambda: lost not in ranks(training).values() and newest(training) > reached,
            240,
            "the gang steps without the node",
        )
        moved = ranks(training)[first]
    finally:
        broken(training.cluster, lost, False)
    training.wait(training.cluster.ready, 120, "the node is back")
    training.wait(lambda: not on_node(training, lost), 120, "what ran there is ended")
    reached = newest(training)
    training.wait(lambda: newest(training) > reached + 20, 60, "the gang steps on")
    assert ranks(training)[first] == moved
    former = told_on_node(training, lost, first)
    assert not former or max(former) < min(told_on_node(training, moved, first))


def on_node(cluster: OnCluster, node: str) -> list[str]:
    """Return the ranks that a node still runs, by its processes."""
    command = cluster.cluster.inside(node, "pgrep", "-f", "/script/train.py")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
