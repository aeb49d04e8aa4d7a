"""What a launcher knows of checkpoints in an object store, read by the ranks' own Python."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from lockstep.train.catalogue import Entry, NotStored, read_index

EVERY = 10.0
"""Seconds between two looks for a checkpoint that is to become whole."""
_TIMEOUT = 60.0
_TRIES = 3


class Remote:
    """The checkpoints of one job at a URL, as they were when they were last looked at."""

    def __init__(self, url: str, python: str) -> None:
        self.directory = url
        self.problem = ""
        """Why they could not be looked at; empty when they could."""
        self._python = python or sys.executable
        self._entries: list[Entry] = []
        self._looked = 0.0
        self._awaited = -1

    def entries(self) -> list[Entry]:
        """Return the whole checkpoints, the newest first."""
        return self._entries

    def find(self, step: int) -> str:
        """Return the URL of the checkpoint after *step* steps.

        Raises:
            NotStored: when there is none.
        """
        for one in self._entries:
            if one.step == step:
                return f"{self.directory}/{one.directory}"
        raise NotStored(f"{self.directory} has no checkpoint of step {step}")

    def awaits(self, step: int) -> None:
        """Look until *step* is whole: another launcher may be the last to write its part."""
        self._awaited = step

    def look_again(self, now: float) -> None:
        """Look if a checkpoint is awaited and the last look was some time ago."""
        newest = self._entries[0].step if self._entries else -1
        if newest < self._awaited and now - self._looked >= EVERY:
            self._looked = now
            self._look()

    def look(self, tries: int = _TRIES) -> None:
        """Look now, several times where there is no answer."""
        for number in range(tries):
            if self._look():
                return
            time.sleep(number + 1)

    def _look(self) -> bool:
        home = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(one for one in (home, os.environ.get("PYTHONPATH", "")) if one)
        try:
            done = subprocess.run(  # noqa: S603  the ranks' own Python
                [self._python, "-m", "lockstep.train.storage", self.directory],
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                check=False,
                timeout=_TIMEOUT,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.problem = f"{self.directory}: {error}"
            return False
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            self.problem = f"{self.directory}: {said[-1] if said else 'no answer'}"
            return False
        self.problem = ""
        self._entries = read_index(done.stdout)
        return True
