"""Print what breaks the project's own rules: circles of files, lengths, and open words."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.lint import circles, lengths, words

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Return 1 when a rule is broken."""
    found = [fault for rule in (circles, lengths, words) for fault in rule.faults(ROOT)]
    print("\n".join([*found, f"lint: {len(found)} faults"]) if found else "lint: no fault found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
