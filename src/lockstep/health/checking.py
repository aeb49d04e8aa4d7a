"""Runs the checks of a node in a child: what they load, and what may hang, is not the agent's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from lockstep.api.node_health import CheckResult

PATIENCE: Final = 120.0
"""Seconds that all checks may take; a device that hangs is no good one."""
CHECKS: Final = "lockstep.health.checks"


def run(names: Sequence[str], directory: Path, patience: float = PATIENCE) -> list[CheckResult]:
    """Return the results of checks in a child; one that does not end in time has failed."""
    command = [sys.executable, "-P", "-m", CHECKS, *names, "--directory", str(directory)]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command, capture_output=True, timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        words = f"no answer within {patience:.0f} s"
        return [CheckResult(name=one, state="failed", evidence=words) for one in names]
    try:
        return msgspec.json.decode(done.stdout, type=list[CheckResult])
    except msgspec.DecodeError:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
        words = f"the checks ended with {done.returncode}: {last}"[:512]
        return [CheckResult(name=one, state="failed", evidence=words) for one in names]
