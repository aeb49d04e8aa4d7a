"""What the summary of a run says beside its failures."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at how many points the crash tests let something go wrong."""
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
