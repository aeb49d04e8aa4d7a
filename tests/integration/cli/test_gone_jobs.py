"""A deleted job is described, explained and listed from the recorder's record."""

from __future__ import annotations

import json

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync


@pytest.fixture(scope="module")
def gone(plane: ControlPlane) -> str:
    """Return the name of a job that failed and was deleted with its pods."""
    failing = "print('step 1'); raise ValueError('bad value 3')"
    plane.run("submit", "plain", "--name", "gone", "--max-restarts", "0", "--wait",
              "--", "python", "-c", failing)  # fmt: skip
    plane.ok("delete", "gone")
    return "gone"


def deleted(plane: ControlPlane) -> list[str]:
    return plane.ok("list", "--deleted", "-o", "name").split()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("describe", ("was deleted", "ValueError: bad value 3", "RestartsUsedUp", "Attempts:")),
        ("explain", ("gone was deleted", "bad value 3", "the program raised an error")),
        ("diagnose", ("the program raised an error",)),
        ("logs", ("step 1", "ValueError: bad value 3")),
    ],
)
def test_commands_tell_of_a_deleted_job(
    plane: ControlPlane, gone: str, command: str, words: tuple[str, ...]
) -> None:
    told = plane.ok(command, gone)
    assert [word for word in words if word not in told] == []


def test_a_deleted_job_is_listed_with_its_record(plane: ControlPlane, gone: str) -> None:
    eventually_sync(lambda: f"job/{gone}" in deleted(plane), 60, "it is on record")
    told = json.loads(plane.ok("describe", gone, "-o", "json"))
    assert told["deleted"]
    assert told["object"]["status"]["phase"] == "Failed"
    assert told["object"]["status"]["history"]["attempts"][0]["ended"][0]["code"] == 1
    assert gone not in plane.ok("list")


def test_a_record_outlives_the_control_plane(plane: ControlPlane, gone: str) -> None:
    plane.stop()
    plane.start()
    assert "bad value 3" in plane.ok("explain", gone)
    done = plane.run("describe", "never-there")
    assert done.returncode == 1
    assert "not found" in done.stderr
