"""What pods wrote is read after they are gone: by attempt, after a suspension, by a follower."""

from __future__ import annotations

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

FLAKY = """
import os, sys
tries = sys.argv[1]
n = len(os.listdir(tries))
open(f"{tries}/{n}", "w").close()
print("attempt", n, flush=True)
sys.exit(1 if n < 2 else 0)
"""


@pytest.fixture(scope="module")
def flaky(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what a follower saw of a job that fails twice and then succeeds."""
    tries = str(tmp_path_factory.mktemp("tries"))
    given = ("--follow", "--", "python", "-c", FLAKY, tries)
    return plane.ok("submit", "plain", "--name", "flaky", *given)


def test_a_follower_shows_every_attempt(flaky: str) -> None:
    written = [line for line in flaky.splitlines() if line.startswith("attempt")]
    assert written == ["attempt 0", "attempt 1", "attempt 2"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((), "attempt 2\n"),
        (("--attempt", "0"), "attempt 0\n"),
        (("--attempt", "1", "--tail", "5", "--since", "1h"), "attempt 1\n"),
        (("--attempt", "1", "--since", "1s", "--role", "other"), None),
        (("--attempt", "2"), "attempt 2\n"),
        (("--previous",), "attempt 1\n"),
        (("--attempt", "7"), None),
    ],
)
def test_logs_are_there_by_attempt(
    plane: ControlPlane, flaky: str, given: tuple[str, ...], shown: str | None
) -> None:
    done = plane.run("logs", "flaky", *given)
    if shown is None:
        assert done.returncode == 1
        assert "is kept" in done.stderr
    else:
        assert (done.returncode, done.stdout) == (0, shown)


def test_a_suspended_job_shows_what_it_wrote(plane: ControlPlane) -> None:
    tick = "for n in 1 2 3; do echo line $n; done; exec sleep 600"
    plane.ok("submit", "plain", "--name", "halted", "--workers", "2", "--", "sh", "-c", tick)
    wrote = {f"[worker-{i}] line {n}" for i in (0, 1) for n in (1, 2, 3)}
    eventually_sync(
        lambda: set(plane.run("logs", "halted").stdout.splitlines()) == wrote, 90, "it writes"
    )
    plane.ok("suspend", "halted")
    eventually_sync(lambda: not _pods(plane, "halted"), 90, "its pods are gone")
    done = plane.run("logs", "halted")
    assert set(done.stdout.splitlines()) == wrote
    assert "this is what attempt 0 wrote" in done.stderr
    assert plane.ok("logs", "halted", "--index", "1", "--tail", "1") == "line 3\n"


def test_kept_logs_outlive_the_control_plane(plane: ControlPlane, flaky: str) -> None:
    plane.stop()
    plane.start()
    assert plane.ok("logs", "flaky", "--attempt", "0") == "attempt 0\n"


def test_a_namespace_made_again_reads_no_older_log(plane: ControlPlane) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "again"}}
    path = "api/v1/namespaces/again"

    def listed() -> list[dict[str, str]]:
        return list(plane.request("GET", f"{path}/pods/-/log?job=old").json)

    def log(one: dict[str, str]) -> int:
        where = f"{path}/pods/{one['pod']}/log?node={one['node']}&uid={one['uid']}"
        return plane.request("GET", f"{where}&container=main").status

    plane.create("api/v1/namespaces", space)
    plane.ok("submit", "plain", "--name", "old", "-n", "again", "--wait", "--", "echo", "canary")
    plane.ok("delete", "old", "-n", "again")
    eventually_sync(lambda: not plane.read(f"{path}/pods")["items"], 90, "its pods are gone")
    (kept,) = listed()
    assert log(kept) == 200
    plane.request("DELETE", path)
    eventually_sync(
        lambda: plane.request("POST", "api/v1/namespaces", space).status == 201,
        90,
        "the namespace is made again",
    )
    assert listed() == []
    assert log(kept) == 404


def test_a_simulated_job_says_that_it_writes_nothing(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "sim", "--simulated", "--runtime", "600s", "--", "true")
    done = plane.run("logs", "sim")
    assert done.returncode == 1
    assert "no command is executed" in done.stderr


def _pods(plane: ControlPlane, job: str) -> list[object]:
    path = f"/api/v1/namespaces/default/pods?labelSelector=lockstep.dev/job%3D{job}"
    items: list[object] = plane.read(path)["items"]
    return items
