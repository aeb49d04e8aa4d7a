"""Lint what changed and run the unit tests that use it; `make check` runs this."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.check import changes, deadline, graph
from tools.check.choice import Choice, choose, is_unit_test

ROOT = Path(__file__).parents[2]
SECONDS = 45.0
"""How long tests may start; the last ones and the summary take a few seconds more."""
FILES_A_RUN = 12
"""Test files that one pytest collects: a start costs a second, and collection counts as well."""
NO_TESTS = 5
"""pytest's exit code where a file holds soak tests alone."""
TIMED_OUT = 124
GRACE = 10.0
"""Seconds that a command gets beyond the time for tests."""
NAMED = 3
"""Files that a line of the summary names."""


@dataclass(frozen=True)
class Ended:
    """A command that ended: what it checked, its exit code, what it printed, and its seconds."""

    name: str
    code: int
    output: str
    seconds: float

    @property
    def failed(self) -> bool:
        """Say whether it found a fault."""
        return self.code not in (0, NO_TESTS, TIMED_OUT)


def run(name: str, command: Sequence[str], until: float) -> Ended:
    """Run one command at the root and keep what it prints; end it soon after the time is up."""
    began = time.monotonic()
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environ = {**os.environ, "PYTHONPATH": paths, deadline.UNTIL: str(until)}
    try:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env=environ,
            check=False,
            text=True,
            capture_output=True,
            timeout=max(0.0, until - time.time()) + GRACE,
        )
    except subprocess.TimeoutExpired:
        return Ended(name, TIMED_OUT, "", time.monotonic() - began)
    output = (ended.stdout + ended.stderr).strip()
    return Ended(name, ended.returncode, output, time.monotonic() - began)


def linters(changed: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the linters that the changed files call for, each with its name."""
    found = []
    python = [path for path in changed if path.endswith(".py")]
    binaries = Path(sys.executable).parent
    if python:
        ruff = str(binaries / "ruff")
        found.append(("ruff check", [ruff, "check", "--quiet", "--force-exclude", *python]))
        style = [ruff, "format", "--quiet", "--check", "--force-exclude", *python]
        found.append(("ruff format", style))
    if any(path.startswith("src/") for path in python) or "pyproject.toml" in changed:
        found.append(("import contracts", [str(binaries / "lint-imports")]))
    if any(path.startswith(("src/", "docs/")) for path in changed) or "README.md" in changed:
        found.append(("own rules", [sys.executable, "-m", "tools.lint"]))
    if any(path.startswith(("src/", "bench/")) for path in python) or "pyproject.toml" in changed:
        found.append(("mypy", [str(binaries / "mypy")]))
    return found


def linted(changed: Sequence[str], until: float) -> list[Ended]:
    """Run the linters one after the other."""
    return [run(name, command, until) for name, command in linters(changed)]


def told(choice: Choice, tests: int) -> list[str]:
    """Return the lines that say which tests were chosen and why."""
    if not choice.tests:
        return [f"check: no unit test of {tests} files uses what changed."]
    if choice.all_because:
        return [f"check: all {tests} files of unit tests: {choice.all_because}."]
    lines = [f"check: {len(choice.tests)} of {tests} files of unit tests, nearest first:"]
    for distance, count in sorted(Counter(one.distance for one in choice.tests).items()):
        near = [one for one in choice.tests if one.distance == distance]
        how = {0: "changed", 1: "use a changed file"}.get(distance, f"are {distance} imports away")
        names = ", ".join(
            one.path.removeprefix("tests/unit/") + (f" ({one.cause})" if distance else "")
            for one in near[:NAMED]
        )
        more = ", ..." if count > NAMED else ""
        lines.append(f"  {count} {how}: {names}{more}")
    return lines


def tested(paths: Sequence[str], until: float) -> Ended:
    """Run one pytest over a few files; it leaves out the tests that come too late."""
    if time.time() >= until:
        return Ended("late", 0, "\n".join(paths), 0)
    command = [sys.executable, "-m", "pytest", "-p", "tools.check.deadline", "-p", "no:xdist"]
    command += ["-m", "not soak", "--tb=short", *paths]
    return run("tests", command, until)


def report(ended: Sequence[Ended]) -> int:
    """Print what failed, and what no time was left for; return the exit code."""
    tests = [one for one in ended if one.name in ("tests", "late")]
    for one in ended:
        if one.failed:
            print(f"check: {one.name} failed:\n{one.output}\n")
    cut = [one.name for one in ended if one.code == TIMED_OUT]
    if cut:
        print(f"check: CUT OFF for lack of time: {', '.join(cut)}. Run `make lint` or `make unit`.")
    late = sum(len(one.output.splitlines()) for one in tests if one.name == "late")
    output = "\n".join(one.output for one in tests)
    left = sum(int(count) for count in re.findall(rf"{deadline.LEFT} (\d+)", output))
    passed = sum(int(count) for count in re.findall(r"(\d+) passed", output))
    if late or left:
        print(
            f"check: NOT RUN for lack of time: {left} tests and {late} files, the farthest ones.\n"
            "Run `make unit` for all unit tests."
        )
    failed = [one.name for one in ended if one.failed]
    lint = [f"{one.name} {one.seconds:.0f} s" for one in ended if one not in tests]
    print(f"check: {passed} tests passed; {', '.join(lint) or 'nothing to lint'}.")
    print(f"check: failed: {', '.join(sorted(set(failed)))}" if failed else "check: no fault found")
    return 1 if failed else 0


def main() -> int:
    """Check the files that changed since main, and return the exit code."""
    options = argparse.ArgumentParser(prog="make check", description=__doc__)
    options.add_argument("--since", help="compare with this commit instead of main")
    options.add_argument("--seconds", type=float, default=SECONDS, help="time for tests (45)")
    options.add_argument("--list", action="store_true", help="print the chosen files, run nothing")
    given = options.parse_args()
    until = time.time() + given.seconds
    since = given.since or changes.base(ROOT)
    changed = changes.changed(ROOT, since)
    print(f"check: {len(changed)} files changed since {since[:10]}.")
    sources = graph.texts(ROOT, ("src/lockstep", "tests", "tools", "bench"))
    choice = choose(changed, graph.users(ROOT, sources).of, sources)
    tests = sum(is_unit_test(path) for path in sources)
    print("\n".join(told(choice, tests)))
    if given.list:
        print("\n".join(f"{one.distance} {one.path}: {one.cause}" for one in choice.tests))
        return 0
    paths = [one.path for one in choice.tests]
    runs = [paths[i : i + FILES_A_RUN] for i in range(0, len(paths), FILES_A_RUN)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        # One place lints from start to end, so that tests begin at once in the other.
        lint = pool.submit(linted, changed, until)
        work = [pool.submit(tested, some, until) for some in runs]
        return report([*lint.result(), *(one.result() for one in work)])


if __name__ == "__main__":
    sys.exit(main())
