"""``submit`` of a name that another job has, and what becomes of a job that is changed."""

from __future__ import annotations

import yaml
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

DUP = ("submit", "plain", "--name", "dup")


def test_a_taken_name_is_an_error_and_replace_reruns_it(plane: ControlPlane) -> None:
    plane.ok(*DUP, "--wait", "--", "true")
    again = plane.run(*DUP, "--wait", "--", "false")
    assert (again.returncode, again.stdout) == (1, "")
    assert "job dup is there already: it succeeded" in again.stderr
    assert "--replace" in again.stderr
    new = plane.run(*DUP, "--max-restarts", "0", "--replace", "--wait", "--", "false")
    assert new.returncode == 1
    assert new.stdout.splitlines() == ["job/dup deleted", "job/dup created"]
    assert "job dup failed" in new.stderr
    plane.ok("delete", "dup")


def test_a_change_says_when_it_applies_and_restart_applies_it(plane: ControlPlane) -> None:
    run1 = ("submit", "plain", "--name", "run1")
    plane.ok(*run1, "--", "sleep", "300")
    plane.eventually_phase("run1", "Running")
    refused = plane.run(*run1, "--", "sleep", "301")
    assert refused.returncode == 1
    assert "is Running, and nothing was changed" in refused.stderr
    manifest = plane.ok(*run1, "--dry-run", "--", "sleep", "301")
    changed = plane.ok("submit", "-f", "-", stdin=manifest)
    assert "the new pods with the next attempt (`lockstep restart run1`)" in changed
    same = plane.ok("submit", "-f", "-", stdin=manifest)
    assert same == "job/run1 unchanged\n"
    plane.ok("restart", "run1")

    def command() -> list[str]:
        pods = plane.read("api/v1/namespaces/default/pods")["items"]
        own = [p for p in pods if p["metadata"]["name"] == "run1-worker-0"]
        return own[0]["spec"]["containers"][0]["command"] if own else []

    eventually_sync(lambda: command() == ["sleep", "301"], 90, "the new command runs")
    plane.eventually_phase("run1", "Running")
    status = plane.get("run1")["status"]
    assert (status["restarts"], status["attempt"]) == (0, 1)
    job = yaml.safe_load(manifest)
    job["spec"]["roles"][0]["replicas"] = 2
    told = plane.ok("submit", "-f", "-", stdin=yaml.safe_dump(job))
    assert "starts anew with its new size" in told
    plane.ok("delete", "run1")
    gone = plane.run("restart", "run1")
    assert gone.returncode == 1
