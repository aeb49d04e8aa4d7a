"""``lockstep controllers`` and the like, each in a process of its own, for tests."""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
from dataclasses import dataclass, field

from tests.support.apiserver import ApiServer

STARTUP_SECONDS = 30.0


@dataclass
class Component:
    """``lockstep NAME``; it may be killed and started again."""

    server: ApiServer
    name: str
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> Component:
        command = [sys.executable, "-m", "lockstep", self.name]
        command += ["--kubeconfig", str(self.server.kubeconfig), "--no-leader-elect"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        line = self._first_line(self.process)
        assert line.startswith("ready"), f"{self.name} said {line!r} instead of ready"
        return self

    @staticmethod
    def _first_line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(STARTUP_SECONDS):
                return f"nothing within {STARTUP_SECONDS} s"
        return process.stdout.readline()

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)

    def stop(self) -> int:
        """End it as a user would, and return its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)
