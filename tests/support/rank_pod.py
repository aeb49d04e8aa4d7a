"""A pod's ranks as real processes beside the parts of a launcher that keep and save their state."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tests.support.waiting import stretched

from lockstep.train.memory import Counter, Memory
from lockstep.train.ranks import Seat
from lockstep.train.saving import Saving

FORK = """
import ast, os, runpy, sys
script, files, *arguments = sys.argv[1:]
with open(script) as file:
    nodes = ast.walk(ast.parse(file.read()))
for node in nodes:
    if isinstance(node, ast.ImportFrom) and node.module.startswith("torch"):
        __import__(node.module)
import torch
ranks = []
for rank, file in enumerate(files.split(",")):
    if pid := os.fork():
        ranks.append(pid)
        continue
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), 1)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
    sys.stdout.flush()
    os._exit(0)
sys.exit(any([os.waitpid(pid, 0)[1] for pid in ranks]))
"""
"""Reads torch once and forks the ranks, as Lockstep's launcher does: each import takes seconds."""


class RankPod:
    """One pod with all ranks of a job, without a control plane."""

    def __init__(self, directory: Path, checkpoints: Path | str) -> None:
        directory.mkdir()
        self._directory = directory
        self.memory = Memory()
        self.saving = Saving({"LOCKSTEP_CHECKPOINTS": str(checkpoints)}, self.memory)
        self._counter = Counter(directory, self.memory, self.saving.save)
        threading.Thread(target=self._counter.serve, daemon=True).start()

    def run(self, script: Path, size: int, *arguments: str, resume: str = "") -> list[str]:
        """Run *size* ranks to their end; return what each printed. *resume* is a stored step."""
        self.saving.seated(Seat(0, 1, 0, size, size))
        if resume:
            self.saving.stored()
        stored = str(self.saving.find(int(resume))) if resume else ""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        shared = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(size),
            "OMP_NUM_THREADS": "1",
            "LOCKSTEP_SOCKET": self._counter.path,
            "LOCKSTEP_GENERATION": "1",
            "LOCKSTEP_RESUME": resume,
            "LOCKSTEP_STORED": stored,
        }
        files = [self._directory / f"printed-{rank}" for rank in range(size)]
        command = [sys.executable, "-c", FORK, str(script), ",".join(map(str, files)), *arguments]
        subprocess.run(command, env={**os.environ, **shared}, check=True, timeout=stretched(240))
        return [file.read_text() for file in files]
