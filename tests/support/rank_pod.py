"""A pod's ranks as real processes beside the parts of a launcher that keep and save their state."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from lockstep.train.memory import Counter, Memory
from lockstep.train.ranks import Seat
from lockstep.train.saving import Saving


class RankPod:
    """One pod with all ranks of a job, without a control plane."""

    def __init__(self, directory: Path, checkpoints: Path | str) -> None:
        directory.mkdir()
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
        ranks = [
            subprocess.Popen(
                [sys.executable, str(script), *arguments],
                env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]
        printed = [rank.communicate(timeout=240)[0] for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0] * size, printed
        return printed
