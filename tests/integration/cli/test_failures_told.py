"""What cannot start ends at once; the reason is the same wherever it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.control_plane import ControlPlane


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("nosuch", ("--", "nosuchcmd")),
        ("notexec", ("--", "/etc/passwd")),
        ("nodir", ("--working-dir", "/nope", "--", "true")),
    ],
)
def test_what_can_never_start_fails_without_a_restart(
    plane: ControlPlane, name: str, given: tuple[str, ...]
) -> None:
    done = plane.run("submit", "plain", "--name", name, "--wait", *given)
    assert done.returncode == 1
    status = plane.get(name)["status"]
    assert (status["phase"], status["restarts"]) == ("Failed", 0)
    assert "cannot start: " in status["message"]
    rows = json.loads(plane.ok("list", "-o", "json"))["items"]
    assert any(row["status"]["message"] == status["message"] for row in rows)
    for shown in ("describe", "explain"):
        assert status["message"] in plane.ok(shown, name)


def test_a_command_runs_in_its_folder_and_prints_immediately(
    plane: ControlPlane,
) -> None:
    code = "import os; print(os.getcwd(), os.environ['PYTHONUNBUFFERED'])"
    plane.ok("submit", "plain", "--name", "where", "--wait", "--", "python", "-c", code)
    assert plane.ok("logs", "where") == f"{Path.cwd()} 1\n"
