"""Build the runner of Kubernetes' own tests of the API machinery (main.go)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tools.go_program import GoProgram

PROGRAM: Final = GoProgram(Path(__file__).parent, ".", "apimachinery")

if __name__ == "__main__":
    sys.exit(PROGRAM.build())
