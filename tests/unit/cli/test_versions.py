"""Lockstep's version has one source, and `lockstep version` reads it off running pods."""

from __future__ import annotations

import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

from lockstep import __version__
from lockstep.api.core import Pod
from lockstep.api.meta import ObjectMeta
from lockstep.cli.standing import parts

ROOT = Path(__file__).parents[3]


def pod(component: str, number: str) -> Pod:
    labels = {"app.kubernetes.io/component": component, "app.kubernetes.io/version": number}
    return Pod(metadata=ObjectMeta(name="p", labels={k: v for k, v in labels.items() if v}))


def test_each_part_is_shown_with_the_versions_it_runs() -> None:
    pods = [pod("scheduler", "0.2.0"), pod("scheduler", "0.3.0"), pod("scheduler", "0.3.0")]
    assert parts([*pods, pod("agent", "")]) == [
        "agent unknown (1 pod)",
        "scheduler 0.2.0 (1 pod)",
        "scheduler 0.3.0 (2 pods)",
    ]


def test_the_package_takes_its_version_from_the_code() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/lockstep/__init__.py"
    assert version("lockstep") == __version__


def test_the_changelog_begins_with_this_version() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    newest = next(line for line in lines if line.startswith("## "))
    assert newest.split()[1] == __version__


def test_a_tag_on_this_commit_is_this_version() -> None:
    command = ["git", "-C", str(ROOT), "tag", "--points-at", "HEAD", "--list", "v*"]
    # A source archive has no git, and so no tag that could differ.
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout.split() in ([], [f"v{__version__}"])
