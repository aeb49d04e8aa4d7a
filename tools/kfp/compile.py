"""Compile the pipelines of tests and examples anew with the real SDK, each beside its source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.kfp import build

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("tests/support/kfp", "examples/pipelines")


def main() -> int:
    """Run every source that compiles a pipeline, in its own directory; return the exit status."""
    made = build.find()
    if made is None:
        print("kfp: no environment: run `make kfp`", file=sys.stderr)
        return 1
    failed = 0
    for place in PLACES:
        for source in sorted((ROOT / place).rglob("*.py")):
            if "compiler.Compiler()" in source.read_text() and source.with_suffix(".yaml").exists():
                command = [str(made / "bin" / "python"), "-W", "ignore", source.name]
                failed |= subprocess.run(command, cwd=source.parent, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
