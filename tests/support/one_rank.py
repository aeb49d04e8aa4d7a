"""The lives of a job's only rank, beside the memory that a launcher keeps for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from lockstep.train.memory import Counter, Memory
from lockstep.train.meters import Meters


class Pod:
    """A launcher's memory, and the lives of its only rank."""

    def __init__(self, directory: Path, program: str, python: str = sys.executable) -> None:
        directory.mkdir()
        self.script = directory / "train.py"
        self.script.write_text(program)
        self.python, self.directory = python, directory
        self.memory, self.meters = Memory(), Meters(directory)
        self.counter = Counter(directory, self.memory)
        threading.Thread(target=self.counter.serve, daemon=True).start()
        self.generation = 0

    def live(self, kill_at: int = 0, **env: str) -> tuple[int, str, str]:
        """Run the program from the newest step that is kept, and kill it at step *kill_at*.

        Return its code, its output and its errors.
        """
        self.generation += 1
        newest = max((one["step"] for one in self.memory.snapshots(0)), default=None)
        losses = json.dumps(self.meters.losses(1))
        self.meters.begin(self.generation)
        told = {
            **{key: one for key, one in os.environ.items() if key not in ("RANK", "LOCAL_RANK")},
            "OUT": str(self.directory),
            "DIED": str(self.directory / "died"),
            "LOCKSTEP_ALONE": "1",
            "LOCKSTEP_SOCKET": self.counter.path,
            "LOCKSTEP_GENERATION": str(self.generation),
            "LOCKSTEP_RESUME": "" if newest is None else str(newest),
            "LOCKSTEP_LOSSES": losses,
            "LOCKSTEP_CAPTURE": "off" if self.memory.forgotten else "",
            **env,
        }
        told |= self.meters.variables(told)
        out, errors = self.directory / "stdout", self.directory / "stderr"
        with out.open("w") as one, errors.open("w") as other:
            running = subprocess.Popen(
                [self.python, self.script], env=told, stdout=one, stderr=other, cwd=self.directory
            )
        while kill_at and running.poll() is None:
            if any(one.steps >= kill_at for one in self.meters.read(1).values()):
                running.kill()
            time.sleep(0.002)
        return running.wait(), out.read_text(), errors.read_text()
