"""Build versitygw, the S3 server that tests and benchmarks read from, of its pinned module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tools.go_program import GoProgram

PROGRAM: Final = GoProgram(
    Path(__file__).parent, "github.com/versity/versitygw/cmd/versitygw", "versitygw"
)
find = PROGRAM.find

if __name__ == "__main__":
    sys.exit(PROGRAM.build())
