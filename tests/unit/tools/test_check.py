"""`make check`: it runs the unit tests that use what changed, nearest first."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tools.check import changes, deadline, graph
from tools.check.__main__ import told
from tools.check.choice import choose

ROOT = Path(__file__).parents[3]
USERS = {
    "lockstep.api.gang": {"lockstep.jobs.core", "tests.unit.api.test_gang"},
    "lockstep.jobs.core": {"tests.support.jobs", "tests.integration.jobs.test_real"},
    "tests.support.jobs": {"tests.unit.jobs.test_core"},
}
SOURCES = {
    "src/lockstep/api/gang.py": "",
    "src/lockstep/cli/page.py": 'read("map.html")',
    "tests/integration/jobs/test_real.py": 'DEPLOY = ROOT / "deploy"',
    "tests/support/jobs.py": "",
    "tests/unit/api/test_gang.py": "",
    "tests/unit/jobs/test_core.py": "",
    "tests/unit/tools/test_docs.py": 'PAGES = ROOT / "docs"',
}


def chosen(*changed: str) -> dict[str, int]:
    found = choose(changed, lambda module: USERS.get(module, set()), SOURCES)
    return {one.path.removeprefix("tests/unit/"): one.distance for one in found.tests}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/lockstep/api/gang.py", {"api/test_gang.py": 1, "jobs/test_core.py": 3}),
        ("tests/support/jobs.py", {"jobs/test_core.py": 1}),
        ("tests/unit/jobs/test_core.py", {"jobs/test_core.py": 0}),
        ("tests/integration/jobs/test_real.py", {}),
        ("docs/jobs.md", {"tools/test_docs.py": 1}),
        ("deploy/chart/values.yaml", {}),
        ("LICENSE", {}),
    ],
)
def test_tests_that_use_a_change_are_chosen(changed: str, expected: dict[str, int]) -> None:
    assert chosen(changed) == expected


def test_the_nearest_of_two_changes_counts() -> None:
    found = chosen("src/lockstep/api/gang.py", "tests/support/jobs.py")
    assert list(found.items()) == [("api/test_gang.py", 1), ("jobs/test_core.py", 1)]


@pytest.mark.parametrize("path", ["pyproject.toml", "requirements.lock", "tests/conftest.py"])
def test_settings_of_all_tests_choose_all_and_say_why(path: str) -> None:
    choice = choose([path], lambda module: set(), SOURCES)
    assert len(choice.tests) == 3
    assert told(choice, 3)[0].startswith(f"check: all 3 files of unit tests: {path} changed, and ")


def test_the_summary_names_each_distance_and_its_cause() -> None:
    choice = choose(["src/lockstep/api/gang.py"], lambda module: USERS.get(module, set()), SOURCES)
    assert told(choice, 400) == [
        "check: 2 of 400 files of unit tests, nearest first:",
        "  1 use a changed file: api/test_gang.py (src/lockstep/api/gang.py)",
        "  1 are 3 imports away: jobs/test_core.py (src/lockstep/api/gang.py)",
    ]


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("src/lockstep/api/__init__.py", "lockstep.api"),
        ("src/lockstep/api/gang.py", "lockstep.api.gang"),
        ("tests/unit/api/conftest.py", "tests.unit.api.conftest"),
        ("docs/jobs.md", None),
        ("examples/demo/demo.py", None),
    ],
)
def test_a_path_defines_a_module(path: str, module: str | None) -> None:
    assert graph.module_of(path) == module


def test_this_repository_s_imports_lead_to_its_tests() -> None:
    sources = graph.texts(ROOT, ("src/lockstep", "tests", "tools", "bench"))
    users = graph.users(ROOT, sources).of
    found = {
        one.path: one.distance for one in choose(["tools/check/choice.py"], users, sources).tests
    }
    assert found["tests/unit/tools/test_check.py"] == 1
    near = {one.path for one in choose(["tests/support/not_tested.py"], users, sources).tests}
    assert "tests/unit/tools/test_not_tested.py" in near
    # Every test below a conftest file runs with it.
    assert "tests.integration.network.test_return" in users("tests.integration.network.conftest")


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_changes_are_committed_uncommitted_and_new_files(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "main")
    for name in ("kept", "edited", "removed"):
        (tmp_path / name).write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    git(tmp_path, "checkout", "-b", "feature")
    (tmp_path / "committed").write_text("1")
    (tmp_path / "removed").unlink()
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "second")
    (tmp_path / "edited").write_text("2")
    (tmp_path / "new").write_text("1")
    assert changes.changed(tmp_path, changes.base(tmp_path)) == ["committed", "edited", "new"]


def test_a_folder_without_commits_gets_a_command(tmp_path: Path) -> None:
    git(tmp_path, "init")
    with pytest.raises(SystemExit, match="pytest -n 2 tests/unit"):
        changes.base(tmp_path)


@pytest.mark.parametrize(
    ("seconds", "words"), [(-1, f"{deadline.LEFT} 2"), (600, "1 failed, 1 passed")]
)
def test_no_test_starts_after_the_deadline(tmp_path: Path, seconds: int, words: str) -> None:
    (tmp_path / "test_two.py").write_text(
        "def test_one():\n    pass\ndef test_two():\n    assert False\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tools.check.deadline",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "no:xdist", "--rootdir", str(tmp_path), str(tmp_path)]
    environ = {"PYTHONPATH": str(ROOT), deadline.UNTIL: str(time.time() + seconds)}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert words in ended.stdout
    assert ended.returncode == (1 if seconds > 0 else 0)
