"""Queues that guard, against a whole control plane."""

from __future__ import annotations

from tests.support.apiserver import ApiServer
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync


def test_a_job_in_an_unknown_queue_waits_for_its_creation(plane: ControlPlane) -> None:
    sent = plane.run("submit", "plain", "--name", "lost", "--queue", "labb", "--", "true")
    assert sent.returncode == 0
    assert "warning: queue labb does not exist" in sent.stderr
    eventually_sync(lambda: "queue labb does not exist" in plane.ok("list"), 60, "it says so")
    assert "lockstep queue create labb" in plane.ok("explain", "lost")
    plane.ok("queue", "create", "labb")
    eventually_sync(lambda: plane.phase("lost") == "Succeeded", 60, "it runs then")


def test_what_can_never_start_is_said_at_submit(plane: ControlPlane) -> None:
    sent = plane.run("submit", "plain", "--name", "huge", "--gpus", "9", "--", "true")
    assert sent.stdout == "job/huge created\n"
    assert (
        "warning: huge cannot start on this cluster as it is: a pod asks for 9 GPUs" in sent.stderr
    )
    plane.ok("delete", "huge")


def test_a_queue_in_use_is_deleted_by_force_only(plane: ControlPlane) -> None:
    plane.ok("queue", "create", "dept", "--limit", "gpu=16")
    plane.ok("queue", "create", "unit", "--parent", "dept", "--guaranteed", "gpu=8")
    for command in (("queue", "delete", "dept"), ("delete", "queue/dept")):
        refused = plane.run(*command)
        assert refused.returncode == 1
        assert "queue dept has 1 child queue (unit)" in refused.stderr
    assert plane.run("queue", "update", "unit", "--guaranteed", "gpu=17").returncode == 2
    plane.ok("queue", "delete", "dept", "--force")

    def told() -> bool:
        row = plane.ok("queue", "list").splitlines()[-1]
        return row.startswith("unit") and "False" in row and "its parent dept does not" in row

    eventually_sync(told, 30, "the child says that its parent is missing")
    plane.ok("queue", "update", "unit", "--parent", "", "--guaranteed", "gpu=none")
    plane.ok("queue", "delete", "unit")


def test_a_queue_that_came_unchecked_shows_what_is_wrong(plane: ControlPlane) -> None:
    queue = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "typo"},
        "spec": {"limit": {"gpu": 8}},
    }
    server = ApiServer(plane.data, plane._port())
    path = "/apis/lockstep.dev/v1alpha1/queues"
    assert server.request("POST", path, queue).status == 201

    def told() -> bool:
        rows = plane.ok("queue", "list").splitlines()
        (row,) = [row for row in rows if row.startswith("typo")]
        return "False" in row and "did you mean nvidia.com/gpu?" in row

    eventually_sync(told, 30, "the note says what is wrong")
    plane.ok("queue", "delete", "typo")
