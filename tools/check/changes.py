"""The files that differ from main: committed on this branch, uncommitted or not yet added."""

from __future__ import annotations

import subprocess
from pathlib import Path

MAIN = ("main", "origin/main", "HEAD")


def git(root: Path, *words: str) -> list[str]:
    """Return the lines that a git command prints; raise CalledProcessError if it fails."""
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def base(root: Path) -> str:
    """Return the commit where this branch left main; the last commit where there is no main."""
    for branch in MAIN:
        try:
            return git(root, "merge-base", "HEAD", branch)[0]
        except subprocess.CalledProcessError:
            continue
    raise SystemExit(
        f"check: {root} has no git commit, so nothing can be compared.\n"
        "Run all unit tests instead: .venv/bin/python -m pytest -n 2 tests/unit"
    )


def changed(root: Path, since: str) -> list[str]:
    """Return the paths, relative to the root, of files that changed and still exist."""
    named = git(root, "diff", "--name-only", "--relative", since)
    named += git(root, "ls-files", "--others", "--exclude-standard")
    return sorted({path for path in named if (root / path).is_file()})
