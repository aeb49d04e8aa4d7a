"""Commands run on real nodes alone; simulated nodes take what asks for simulation, and say so."""

from __future__ import annotations

from pathlib import Path

from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

from lockstep.nodes.process.machine_info import cpus

WHOLE = ("--cpu", str(cpus()))


def nodes_of(plane: ControlPlane, job: str) -> set[str]:
    pods = plane.read("api/v1/namespaces/default/pods")["items"]
    own = [p for p in pods if p["metadata"]["labels"].get("lockstep.dev/job") == job]
    return {p["spec"].get("nodeName", "") for p in own}


def running_pods(plane: ControlPlane, job: str) -> dict[str, str]:
    """Return the nodes of a job's running pods, by uid."""
    pods = plane.read("api/v1/namespaces/default/pods")["items"]
    return {
        p["metadata"]["uid"]: p["spec"]["nodeName"]
        for p in pods
        if p["metadata"]["labels"].get("lockstep.dev/job") == job
        and p["status"].get("phase") == "Running"
    }


def simulated_nodes(plane: ControlPlane) -> set[str]:
    items = plane.read("api/v1/nodes")["items"]
    kind = "lockstep.dev/node"
    return {
        n["metadata"]["name"] for n in items if n["metadata"]["labels"].get(kind) == "simulated"
    }


def test_a_real_job_waits_for_a_full_machine(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "first", *WHOLE, "--", "sleep", "600")
    plane.eventually_phase("first", "Running")
    plane.ok("submit", "plain", "--name", "second", *WHOLE, "--", "true")
    told = eventually_sync(
        lambda: (text := plane.ok("explain", "second")) and "CPU" in text and text,
        what="second says what is short",
    )
    assert "4 nodes are simulated" in told
    assert plane.phase("second") == "Pending"
    assert nodes_of(plane, "second") == {""}
    plane.ok("delete", "first")
    plane.eventually_phase("second", "Succeeded")
    assert not nodes_of(plane, "second") & simulated_nodes(plane)
    plane.ok("delete", "second")


def test_a_simulated_job_is_marked_everywhere(plane: ControlPlane) -> None:
    said = plane.run("submit", "plain", "--name", "play", "--simulated", "--gpus", "8", "--", "x")
    assert "no command is executed" in said.stderr
    plane.eventually_phase("play", "Running")
    assert nodes_of(plane, "play") <= simulated_nodes(plane)
    for shown in (("list",), ("list", "gangs"), ("list", "pods"), ("describe", "play")):
        eventually_sync(lambda shown=shown: "Running,simulated" in plane.ok(*shown), 30, str(shown))
    assert "no command is executed" in plane.ok("explain", "play")
    plane.ok("delete", "play")


def test_nodes_that_nobody_simulates_any_more_go(tmp_path: Path) -> None:
    before = ControlPlane(tmp_path / "data", "--simulate", "4x8").start()
    before.ok("submit", "plain", "--name", "real", "--", "sleep", "600")
    four = ("--workers", "4", "--min", "1", "--gpus", "8")
    before.ok("submit", "plain", "--name", "play", "--simulated", *four, "--", "x")
    before.eventually_phase("real", "Running")
    before.eventually_bound("play", 4)
    former = running_pods(before, "real")
    assert before.stop() == 0
    after = ControlPlane(tmp_path / "data", "--simulate", "2x8").start()
    try:
        assert len(simulated_nodes(after)) == 2
        # The job's phase says Running until its controller has seen what became of the pods.
        again = eventually_sync(
            lambda: {
                uid: node for uid, node in running_pods(after, "real").items() if uid not in former
            },
            90,
            "real runs in a new pod",
        )
        assert set(again.values()) == set(former.values())
        after.eventually_phase("real", "Running")
        eventually_sync(lambda: after.gangs()["play"].get("bound") == 2, 90, "play goes on with 2")
        after.eventually_phase("play", "Running")
        assert after.get("play")["status"]["restarts"] == 0
        assert after.get("real")["status"]["restarts"] == 0
        assert after.stop() == 0
        without = ControlPlane(tmp_path / "data").start()
        assert simulated_nodes(without) == set()
        assert without.stop() == 0
    finally:
        if after.process is not None and after.process.poll() is None:
            after.stop()
