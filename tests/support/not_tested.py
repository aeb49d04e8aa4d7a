"""What a run of the tests could not test, and why: the last thing that it prints.

Where ``CI=true`` (the gate) a skipped test is an error unless its reason
is listed in ``tests/may_skip.txt``: otherwise green would mean less than it says.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

LISTED: Final = Path(__file__).parents[1] / "may_skip.txt"
UNTESTED_TOO: Final = 6
"""The exit code where tests failed and another was skipped that must run; pytest's own end at 5.

To run the failed tests again does not run the skipped one, so this is not the code of failures.
"""
_PREFIX: Final = "Skipped: "


def reasons(skipped: Iterable[object]) -> Counter[str]:
    """Count the reasons of reports of skipped tests."""
    found: Counter[str] = Counter()
    for longrepr in skipped:
        text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        found[text.removeprefix(_PREFIX)] += 1
    return found


def listed(text: str) -> list[re.Pattern[str]]:
    """Return the patterns of *text*: one a line, what follows two blanks and a # is a remark."""
    lines = (line.partition("  #")[0].strip() for line in text.splitlines())
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


def unlisted(found: Iterable[str], patterns: Iterable[re.Pattern[str]]) -> list[str]:
    """Return the reasons that no pattern matches as a whole."""
    allowed = list(patterns)
    return [reason for reason in found if not any(p.fullmatch(reason) for p in allowed)]


def summary(found: Counter[str]) -> list[str]:
    """Return the lines to print: how many tests, and the count of each reason."""
    if not found:
        return ["every test that was chosen ran"]
    lines = [f"{found.total()} tests did not run:"]
    return lines + [f"  {count:4}  {reason}" for reason, count in found.most_common()]


def strict() -> bool:
    """Return whether an unlisted reason is an error here."""
    return os.environ.get("CI", "").lower() == "true"
