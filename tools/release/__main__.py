"""Release a version: number it, collect the news fragments, commit, and tag the commit."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lockstep import __version__

ROOT = Path(__file__).parents[2]
PLACES = (
    "src/lockstep/__init__.py",
    "deploy/Containerfile",
    "deploy/chart/lockstep/Chart.yaml",
    "docs/install.md",
    "docs/install-cluster.md",
)
"""Files that state the version; the rest of deploy/ is generated from them."""
_NUMBER = re.compile(r"\d+\.\d+\.\d+")


def refusal(root: Path, old: str, new: str) -> str | None:
    """Return why a version cannot be released, with a command that helps; None if it can."""
    if not _NUMBER.fullmatch(new):
        return f"release: {new!r} is no version like 0.3.0: make release VERSION=0.3.0"
    if [int(part) for part in new.split(".")] <= [int(part) for part in old.split(".")]:
        return f"release: {new} is not above {old}, the version of this tree; choose a higher one"
    if run(root, "git", "tag", "--list", f"v{new}"):
        return f"release: the tag v{new} exists; choose a higher version, or see git show v{new}"
    if changed := run(root, "git", "status", "--porcelain").splitlines():
        return f"release: {len(changed)} files are not committed, {changed[0]}: git commit or stash"
    if not list((root / "newsfragments").glob("*.md")):
        return "release: newsfragments/ is empty, so users would notice nothing; add a fragment"
    return None


def number(root: Path, old: str, new: str, places: Sequence[str] = PLACES) -> None:
    """Replace the old version by the new one in every file that states it."""
    for place in places:
        text = (root / place).read_text()
        if old not in text:
            raise SystemExit(f"release: {place} does not state {old}; mend PLACES in {__file__}")
        (root / place).write_text(re.sub(rf"(?<![\d.]){re.escape(old)}(?![\d.])", new, text))


def collect(root: Path, new: str) -> None:
    """Write the changelog's new section from the news fragments, and remove these."""
    run(root, sys.executable, "-m", "towncrier", "build", "--yes", "--version", new)


def record(root: Path, new: str) -> None:
    """Commit the release and tag the commit."""
    run(root, "git", "add", "--all")
    run(root, "git", "commit", "--message", f"release: {new}")
    run(root, "git", "tag", "--annotate", f"v{new}", "--message", f"Lockstep {new}")


def run(root: Path, *command: str) -> str:
    """Run a command at the root and return what it prints; exit with its error if it fails."""
    ended = subprocess.run(command, cwd=root, check=False, text=True, capture_output=True)
    if ended.returncode:
        raise SystemExit(f"release: {' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def main() -> int:
    """Release the version that is named."""
    options = argparse.ArgumentParser(prog="make release", description=__doc__)
    options.add_argument("version", help="the new version, such as 0.3.0")
    new = options.parse_args().version
    if words := refusal(ROOT, __version__, new):
        print(words, file=sys.stderr)
        return 2
    number(ROOT, __version__, new)
    run(ROOT, sys.executable, "-m", "tools.deploy.generate")
    collect(ROOT, new)
    record(ROOT, new)
    print(f"release: v{new} is tagged. Look with git show, then: git push --follow-tags")
    return 0


if __name__ == "__main__":
    sys.exit(main())
