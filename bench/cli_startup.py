"""How soon the command line answers: ``--help`` alone, and ``list`` against a running server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figure import Figure

HELP_LIMIT = 200.0
LIST_LIMIT = 400.0
DRY_RUN_LIMIT = 300.0
RUNS = 9
# What the installed script does, without the working directory on the import path.
ARENA = (sys.executable, "-P", "-c", "from lockstep.cli.arena.commands import link; link()")
LOCKSTEP = (sys.executable, "-P", "-m", "lockstep")


def run() -> list[Figure]:
    bare = _milliseconds([sys.executable, "-c", "pass"], os.environ)
    shown = _milliseconds([*LOCKSTEP, "--help"], os.environ)
    submit = ("submit", "pytorch", "--name=t", "--workers=2", "--image=i", "--dry-run", "run")
    dry = _milliseconds([*ARENA, *submit], os.environ)
    with _server() as kubeconfig:
        listed = _milliseconds([*LOCKSTEP, "list"], {**os.environ, "KUBECONFIG": str(kubeconfig)})
    arena = Figure("arena submit --dry-run", dry, "ms", "lower", DRY_RUN_LIMIT)
    return [
        arena.beside("lockstep --help", shown),
    ] + [
        Figure(name, took, "ms", "lower", limit).beside("python -c pass", bare)
        for name, took, limit in (
            ("lockstep --help", shown, HELP_LIMIT),
            ("lockstep list", listed, LIST_LIMIT),
        )
    ]


def _milliseconds(command: list[str], env: os._Environ[str] | dict[str, str]) -> float:
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(
            command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        times.append((time.perf_counter() - began) * 1000)
    # The least disturbed run: whatever else the machine does only ever adds.
    return min(times)


@contextmanager
def _server() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as directory:
        data = Path(directory) / "data"
        with subprocess.Popen(
            [*LOCKSTEP, "up", "--data", str(data), "--port", "0", "--no-process-node", "--leashed"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline().startswith(b"ready"), "lockstep up failed"
                yield data / "kubeconfig"
            finally:
                process.terminate()
