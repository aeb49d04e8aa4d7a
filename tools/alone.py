"""Run again, one at a time, the few tests that failed beside others: a busy machine fails no test.

A test that fails here as well is broken. One that passes is named, so that its cause is looked for.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")
"""Where pytest keeps the tests that failed last, by their names."""
MOST: Final = 10
"""How many may be tried again: more than that is no matter of load."""


def few(failed: str) -> list[str]:
    """Return the tests to try again of what pytest kept, none where they are too many.

    >>> few('{"tests/test_a.py::test_b[c]@group": true}')
    ['tests/test_a.py::test_b[c]']
    """
    names = [re.sub(r"@[^@\[\]]+$", "", one) for one in json.loads(failed)]
    # A file that does not import is kept by its name alone.
    return names if len(names) <= MOST and all("::" in one for one in names) else []


def main() -> int:
    """Return pytest's exit code, 1 where nothing may be tried again."""
    names = few(FAILED.read_text()) if FAILED.exists() else []
    if not names:
        return 1
    print(f"test: {len(names)} failed beside others; they run again, one at a time:", flush=True)
    print("".join(f"  {name}\n" for name in names), flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "", *names]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print(f"test: {len(names)} failed beside others and passed alone; look for the cause:")
        print("".join(f"  {name}\n" for name in names), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
