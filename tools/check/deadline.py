"""A pytest plugin that ends a run when its time is up, and counts the tests left."""

from __future__ import annotations

import os
import time

import pytest

UNTIL = "LOCKSTEP_CHECK_UNTIL"
"""The clock's value, in seconds of `time.time()`, after which no test starts."""
LEFT = "check: tests left for lack of time:"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leave a test out once the time is up."""
    if time.time() < float(os.environ[UNTIL]):
        return None
    left = item.session.stash.setdefault(_LEFT, [])
    left.append(item.nodeid)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests were left out."""
    left = terminalreporter._session.stash.get(_LEFT, [])
    if left:
        terminalreporter.write_line(f"{LEFT} {len(left)}")


_LEFT = pytest.StashKey[list[str]]()
