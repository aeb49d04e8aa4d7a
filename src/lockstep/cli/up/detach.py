"""``lockstep up --detach``: the supervisor in the background, shown until it is ready."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lockstep.cli.failure import CommandFailed
from lockstep.cli.up import lock
from lockstep.cli.up.logfile import PRIVATE


def start(data: Path, arguments: Sequence[str]) -> None:
    """Start ``lockstep`` with *arguments* in a session of its own; return once it is ready.

    Raises:
        CommandFailed: when it ends instead, or runs already.
    """
    pid = lock.holder(data)
    if pid is not None:
        raise CommandFailed(
            f"lockstep up already runs on {data} (process {pid})",
            f"stop it with `lockstep down --data {data}`, or choose another --data directory",
        )
    log = data / "log" / "up.log"
    lock.require_usable(data)
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    log.touch(mode=PRIVATE)
    log.chmod(PRIVATE)
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
            [sys.executable, "-P", "-m", "lockstep", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    _follow(process, log)


def _follow(process: subprocess.Popen[bytes], log: Path) -> None:
    with log.open() as lines:
        while True:
            ended = process.poll() is not None
            while line := lines.readline():
                if line.startswith("ready"):
                    print(line, lines.readline(), sep="", end="", flush=True)
                    return
                print(line, end="", file=sys.stderr, flush=True)
            if ended:
                raise CommandFailed("lockstep up ended before it was ready", f"its log is {log}")
            time.sleep(0.05)
