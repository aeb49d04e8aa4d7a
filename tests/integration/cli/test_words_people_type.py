"""What people type who know kubectl and Slurm."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.control_plane import LOCKSTEP, ControlPlane
from tests.support.waiting import eventually_sync, stretched

from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.workloads.core.plan import DEPLOYMENTS

FOLLOWED = (
    "submit",
    "plain",
    "--name",
    "long",
    "--follow",
    "--",
    "sh",
    "-c",
    "echo begun; sleep 600",
)


def test_options_stand_before_the_command_too(plane: ControlPlane, tmp_path: Path) -> None:
    done = subprocess.run(
        [*LOCKSTEP, "--kubeconfig", str(plane.kubeconfig), "-n", "default", "list", "nodes"],
        env={**os.environ, "KUBECONFIG": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "sim-0" in done.stdout
    assert "no jobs in team" in plane.run("-n", "team", "list").stderr


@pytest.mark.parametrize("kind", ["pods", "jobs", "nodes", "queues", "po", "gang"])
def test_get_takes_a_kind(plane: ControlPlane, kind: str) -> None:
    got, listed = plane.run("get", kind, "-o", "name"), plane.run("list", kind, "-o", "name")
    assert (got.returncode, got.stdout) == (listed.returncode, listed.stdout) == (0, got.stdout)


@pytest.mark.parametrize(
    "command", [("top",), ("top", "jobs"), ("top", "queues"), ("describe", "queue", "default")]
)
def test_views_are_json_too(plane: ControlPlane, command: tuple[str, ...]) -> None:
    assert json.loads(plane.ok(*command, "-o", "json")) is not None
    assert plane.ok(*command, "-o", "yaml")


def test_an_ended_job_is_explained_and_cannot_be_suspended(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "over", "--wait", "--", "true")
    told = json.loads(plane.ok("explain", "over", "-o", "json"))
    assert (told["phase"], told["name"]) == ("Succeeded", "job/over")
    assert plane.ok("list", "--phase", "succeeded", "-o", "name") == "job/over\n"
    assert plane.run("list", "--phase", "Running").stderr == "no jobs in default\n"
    refused = plane.run("suspend", "over")
    assert refused.returncode == 1
    assert "job over has ended (Succeeded)" in refused.stderr
    page = json.loads(plane.ok("describe", "over", "-o", "json"))
    assert page["object"]["metadata"]["name"] == "over"
    assert len(page["pods"]) == 1


def test_an_interrupted_follower_says_that_the_job_goes_on(plane: ControlPlane) -> None:
    process = subprocess.Popen(
        [*LOCKSTEP, *FOLLOWED],
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=stretched(60))
    assert process.returncode == 130
    assert "job/long created" in said
    assert "job long goes on; `lockstep logs -f long`" in said
    # Its pods run; the controller may be about to say so of the job.
    plane.eventually_phase("long", "Running")
    plane.ok("delete", "long")


def test_a_job_comes_after_another(plane: ControlPlane, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = ("sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done")
    plane.ok("submit", "plain", "--name", "prep", "--", *wait)
    plane.eventually_phase("prep", "Running")
    doubt = plane.run("submit", "plain", "--name", "use", "--after", "prep", "--", "echo", "used")
    assert "warning" not in doubt.stderr
    waits = "waits for job prep to succeed: it is Running"
    eventually_sync(lambda: waits in plane.ok("list"), 60, waits)
    assert "use" not in plane.gangs()
    go.touch()
    plane.eventually_phase("use", "Succeeded")
    assert plane.ok("logs", "use") == "used\n"
    doubt = plane.run("submit", "plain", "--name", "lost", "--after", "nothing", "--", "true")
    assert "warning: job nothing, which lost waits for, is not there" in doubt.stderr
    plane.ok("submit", "plain", "--name", "sweep", "--array", "2", "--", "true")
    plane.ok("submit", "plain", "--name", "sum", "--after", "sweep", "--", "echo", "all")
    plane.eventually_phase("sum", "Succeeded")
    assert {job: plane.phase(job) for job in ("sweep-0", "sweep-1")} == {
        "sweep-0": "Succeeded", "sweep-1": "Succeeded"}  # fmt: skip
    plane.ok("delete", "prep", "use", "lost", "sum", "sweep-0", "sweep-1")


def test_a_deployment_runs_like_anywhere(plane: ControlPlane) -> None:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "600"]}
    labels = {"app": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    plane.ok("submit", "-f", "-", stdin=json.dumps(deployment))
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    eventually_sync(
        lambda: plane.read(path)["status"].get("availableReplicas") == 2, 60, "two pods run"
    )

    async def delete() -> None:
        async with Client(ClusterConfig.load(plane.kubeconfig)) as client:
            await client.delete(DEPLOYMENTS, "web", "default", propagation="Background")

    asyncio.run(delete())
    eventually_sync(lambda: plane.ok("get", "pods", "-o", "name").count("web") == 0, 60, "gone")


def test_a_pod_of_another_scheduler_is_explained(plane: ControlPlane) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "nginx"},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "nginx", "image": "nginx"}],
        },
    }
    plane.ok("submit", "-f", "-", stdin=json.dumps(pod))
    told = plane.ok("explain", "pod", "nginx")
    assert "asks for the scheduler kai-scheduler; Lockstep places only pods" in told
    plane.ok("delete", "pod", "nginx")
    eventually_sync(lambda: plane.ok("get", "pods", "-o", "name").count("nginx") == 0, 30, "gone")
