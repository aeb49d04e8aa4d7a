"""``make conformance``: compare both servers, say how they differ, renew the documentation."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.conformance.play import compare
from tests.support.conformance.report import PAGE, spoken, unexplained, written
from tests.support.conformance.script import SCRIPT
from tests.support.conformance.servers import both


def main() -> int:
    """Return 1 when there is a difference that nobody has explained yet."""
    with tempfile.TemporaryDirectory() as directory, both(Path(directory)) as servers:
        found = compare(SCRIPT, *servers)
    print("\n".join(spoken(found)))
    PAGE.write_text(written(PAGE.read_text(), found))
    return 1 if unexplained(found) else 0


if __name__ == "__main__":
    sys.exit(main())
