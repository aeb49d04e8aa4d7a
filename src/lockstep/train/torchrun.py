"""A ``torchrun`` that leaves rendezvous and restarts to the launcher: same flags, same variables.

It starts the pod's ranks and ends with the first that fails. It stands first on PATH of what a
launcher starts, so that ``bash -c "... torchrun ..."`` works as it does elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lockstep.train.forking import fork
from lockstep.train.ranks import rank_variables

_OURS = (
    *("--nnodes", "--node-rank", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id"),
    *("--rdzv-conf", "--max-restarts", "--monitor-interval", "--start-method", "--role"),
    *("--master-addr", "--master-port", "--local-addr", "--event-log-handler", "--log-dir"),
    *("-r", "--redirects", "-t", "--tee", "--local-ranks-filter", "--logs-specs", "--numa-binding"),
    *("--signals-to-handle", "--shutdown-timeout"),
)
"""Flags with a value that the launcher decides, or that this program has no use for."""


def main(arguments: Sequence[str]) -> int:
    """Run the ranks; return the code of the first that fails."""
    options = _parser().parse_args(arguments)
    env = dict(os.environ)
    count = int(env["PET_NPROC_PER_NODE"])
    wanted = options.nproc_per_node
    if wanted is not None and wanted.isdecimal() and int(wanted) != count:
        print(
            f"torchrun: --nproc-per-node {wanted}: the job's processesPerNode is {count}; make "
            "them the same or leave the flag out",
            file=sys.stderr,
        )
        return 2
    return _run(_command(options), env, count)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchrun", description=__doc__, allow_abbrev=False)
    parser.add_argument("--nproc-per-node", "--nproc_per_node")
    for flag in _OURS:
        spellings = {flag, "--" + flag[2:].replace("-", "_")} if flag[:2] == "--" else {flag}
        parser.add_argument(*sorted(spellings), help=argparse.SUPPRESS)
    parser.add_argument("--standalone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("--no-python", "--no_python", action="store_true")
    parser.add_argument("--run-path", "--run_path", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("program")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def _command(options: argparse.Namespace) -> list[str]:
    if options.no_python:
        return [options.program, *options.rest]
    # The Python of the environment that the user has chosen, as far as PATH tells.
    python = shutil.which("python3") or shutil.which("python") or sys.executable
    module = ["-m"] if options.module else []
    return [python, "-u", *module, options.program, *options.rest]


def _run(command: list[str], env: Mapping[str, str], count: int) -> int:
    alive: dict[int, int] = {}
    ended: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for local in range(count):
        own = {**env, **rank_variables(env, local)}
        process = fork(command, own) or subprocess.Popen(command, env=own)  # noqa: S603  the user's
        alive[process.pid] = local
        threading.Thread(target=_wait, args=(process, ended), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: _pass_on(alive, got))
    while alive:
        pid, code = ended.get()
        local_rank = alive.pop(pid)
        if code == 0:
            continue
        with contextlib.suppress(OSError, KeyError):
            Path(env["LOCKSTEP_NOTE"]).write_text(f"{local_rank} {code}")
        _pass_on(alive, signal.SIGKILL)
        return code if code > 0 else 128 - code
    return 0


def _wait(process: Any, ended: queue.SimpleQueue[tuple[int, int]]) -> None:
    ended.put((process.pid, process.wait()))


def _pass_on(alive: Mapping[int, int], number: int) -> None:
    for pid in list(alive):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
