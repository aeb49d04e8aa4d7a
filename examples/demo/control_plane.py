"""The embedded control plane as a child of the demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from narration import Failed, say

LOCKSTEP = (sys.executable, "-P", "-m", "lockstep")
READY_WITHIN = 60.0
END_WITHIN = 40.0


class ControlPlane:
    """``lockstep up`` on a directory of its own and a free port."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.kubeconfig = self.data / "kubeconfig"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, simulate: str) -> None:
        """Start it and return when it is ready.

        Raises:
            Failed: when it is not ready in time.
        """
        self._process = await asyncio.create_subprocess_exec(
            *(*LOCKSTEP, "up", "--data", str(self.data), "--port", "0", "--simulate", simulate),
            "--leashed",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        if self._process.stdout is None:
            raise Failed("lockstep up has no output")
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), READY_WITHIN)
        except TimeoutError:
            raise Failed(f"lockstep up: not ready within {READY_WITHIN:.0f} s") from None
        if not line.startswith(b"ready"):
            raise Failed("lockstep up ended before it was ready")
        say(line.decode().split(" export")[0])

    async def command(self, *arguments: str) -> str:
        """Return what a ``lockstep`` command prints.

        Raises:
            Failed: when it fails.
        """
        return await output(*LOCKSTEP, *arguments, kubeconfig=self.kubeconfig)

    async def stop(self) -> None:
        """End it and see that nothing is left running.

        Raises:
            Failed: when something is.
        """
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), END_WITHIN)
        except TimeoutError:
            self._process.kill()
            raise Failed(f"lockstep up still ran {END_WITHIN:.0f} s after SIGTERM") from None
        if left := leftovers(self.data.parent):
            raise Failed("still running: " + "; ".join(left))

    def log_tails(self, count: int = 8) -> list[str]:
        """Return the last lines of each part's log."""
        lines: list[str] = []
        for path in sorted((self.data / "log").glob("*.log")):
            tail = path.read_text(errors="replace").splitlines()[-count:]
            lines += [f"--- {path.name}", *tail]
        return lines


async def output(*command: str, kubeconfig: Path | None = None) -> str:
    """Return what *command* prints; it ends with the task that waits for it.

    Raises:
        Failed: when it fails.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Failed(f"{' '.join(command)}: {err.decode().strip()}")
    return out.decode()


def leftovers(directory: Path) -> list[str]:
    """Return the processes, other than this one, that name *directory* in their command."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if str(directory) in command:
                found.append(f"{entry.name}: {command.strip()}")
    return found
