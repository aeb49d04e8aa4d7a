"""The launcher's end of the child that writes checkpoints (``lockstep.train.persist``)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from lockstep.train.state import Json

_LONGEST_ANSWER = 1 << 16


class Persister:
    """One child with the ranks' Python; started with the first save, and again if it is killed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._lock = threading.Lock()

    def warm(self, python: str) -> None:
        """Start the child beforehand: importing torch takes seconds, and a grace may be short."""
        with self._lock, contextlib.suppress(OSError):
            if self._line is None and python:
                self._start(python)

    def write(self, python: str, request: Json, file: int) -> str:
        """Have the copy in *file* written; return why that failed, or nothing."""
        with self._lock:
            return self._write(python, request, file)

    def _write(self, python: str, request: Json, file: int) -> str:
        what = f"step {request['step']} of rank {request['rank']} is not saved"
        problem = ""
        for _ in range(2):
            # What kills the child once may have nothing to do with the request.
            try:
                answer = self._ask(python, request, file)
            except (OSError, ValueError) as error:
                self._end()
                problem = str(error)
                continue
            return f"{what}: {answer['problem']}" if "problem" in answer else ""
        return f"{what}: the process that writes it has ended: {problem}"

    def _ask(self, python: str, request: Json, file: int) -> Json:
        line = self._line or self._start(python)
        socket.send_fds(line, [json.dumps(request).encode()], [file])
        data = line.recv(_LONGEST_ANSWER)
        if not data:
            raise OSError("it closed the connection")
        answer: Json = json.loads(data)
        return answer

    def _start(self, python: str) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        home = str(Path(__file__).resolve().parents[2])
        others = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join(one for one in (home, others) if one)
        with theirs:
            self._child = subprocess.Popen(  # noqa: S603  the ranks' own Python
                [python or sys.executable, "-m", "lockstep.train.persist", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                # A signal to the pod's processes is for the launcher to answer.
                start_new_session=True,
            )
        self._line = ours
        return ours

    def _end(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._line = self._child = None
