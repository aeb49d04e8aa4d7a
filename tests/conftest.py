"""Settings of the whole suite, and what the summary of a run says beside its failures."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter

import pytest
from hypothesis import settings
from tests.support import not_tested
from tests.support.examples import PROFILE, examples

# The gate draws the same examples in every run. New ones are searched for by `make soak`; what
# that finds becomes an @example.
settings.register_profile("gate", derandomize=True, deadline=None, max_examples=examples(100))
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(PROFILE)

# Where Python is told to keep no bytecode, each of the thousands of processes that tests start
# would compile Lockstep anew, and each worker the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

REAL = "real control plane"
"""Tests that share etcd, kube-apiserver and kube-controller-manager, which live in one worker.

The crash stories take half of the time, so they have a control plane of their own.
"""
_REAL_FIXTURES = frozenset({"real_server", "running_cluster", "real_cluster", "simulated_cluster"})
_TORCH = frozenset(f"tests/unit/train/test_{name}.py" for name in ("copying", "persist"))
"""Files whose tests use torch themselves: each worker that does so imports for seconds."""
_REAL_TURN = re.compile(r"(^|-)(kube-apiserver|kubernetes)(-|$)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together what shares a server, so that no worker starts it anew; mark what can wait."""
    for item in items:
        if _waits_for_soak(item):
            item.add_marker(pytest.mark.soak)
        if item.get_closest_marker("xdist_group"):
            continue
        path = item.nodeid.partition("::")[0]
        if _on_real_server(item):
            crash = "/crashes/" in path
            item.add_marker(pytest.mark.xdist_group(f"{REAL} of crashes" if crash else REAL))
        elif path in _TORCH:
            item.add_marker(pytest.mark.xdist_group("torch"))
        elif path.startswith(("tests/integration", "tests/e2e")):
            item.add_marker(pytest.mark.xdist_group(path))


def _on_real_server(item: pytest.Item) -> bool:
    """Say whether a test takes the real server, or is played on both and this is its turn."""
    fixtures = getattr(item, "fixturenames", ())
    return _real_turn(item) or not _REAL_FIXTURES.isdisjoint(fixtures)


def _real_turn(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return (
        callspec is not None
        and item.nodeid.startswith("tests/integration")
        and _REAL_TURN.search(callspec.id) is not None
    )


def _waits_for_soak(item: pytest.Item) -> bool:
    """Say whether the gate leaves out a story's turn on the real server: its file names a few."""
    sample = item.get_closest_marker("real_sample")
    return sample is not None and _real_turn(item) and item.originalname not in sample.args


def _skipped(reporter: pytest.TerminalReporter) -> Counter[str]:
    return not_tested.reasons(report.longrepr for report in reporter.getreports("skipped"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a test was skipped for a reason that is not listed, and every test must run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput") or reporter is None or not not_tested.strict():
        return
    patterns = not_tested.listed(not_tested.LISTED.read_text())
    if not_tested.unlisted(_skipped(reporter), patterns):
        ends = {0: pytest.ExitCode.TESTS_FAILED, 1: not_tested.UNTESTED_TOO}
        session.exitstatus = ends.get(int(session.exitstatus), session.exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the crash tests let something go wrong, and then what was not tested."""
    told = [
        f"{report.nodeid.rpartition('/')[2]}: {value}"
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "crashes"
    ]
    if told:
        terminalreporter.section("crashes")
        for line in told:
            terminalreporter.write_line(line)
    found = _skipped(terminalreporter)
    terminalreporter.section("NOT TESTED")
    for line in not_tested.summary(found):
        terminalreporter.write_line(line)
    if found and not_tested.strict():
        patterns = not_tested.listed(not_tested.LISTED.read_text())
        for reason in not_tested.unlisted(found, patterns):
            terminalreporter.write_line(f"ERROR: {reason!r} is not in {not_tested.LISTED.name}")
