"""Ranks that are forked from a process that has torch (``lockstep.train.forkserver``).

Ranks that start anew need not import torch again: that takes most of the time from a fault to the
next step. Commands that cannot be forked are started as usual.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lockstep.train.forkserver import LENGTH, words_of

SOCKET = "LOCKSTEP_FORKSERVER"
"""Variable with the server's socket; ``off`` in a pod's variables keeps it from being started."""
PYTHON = "LOCKSTEP_FORKSERVER_PYTHON"
MODULES = ("torch", "torch.distributed", "lockstep.train.checkpointer")
_IMPORT_SECONDS = 120.0


class Forked:
    """A rank that was forked, with what ``subprocess.Popen`` has of it."""

    def __init__(self, connection: socket.socket, pid: int, stderr: Any) -> None:
        self.pid, self.stderr = pid, stderr
        self._connection = connection
        self._code: int | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        # Where the server ends, its ranks are killed.
        code = -9
        with self._connection, contextlib.suppress(OSError, ValueError, KeyError):
            self._connection.settimeout(None)
            with self._connection.makefile("rb") as lines:
                code = int(json.loads(lines.readline())["code"])
        self._code = code
        self._ended.set()

    def wait(self, timeout: float | None = None) -> int:
        """Return its wait code.

        Raises:
            subprocess.TimeoutExpired: when it has not ended in *timeout* seconds.
        """
        if not self._ended.wait(timeout) or self._code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return self._code


def fork(command: Sequence[str], env: Mapping[str, str], *, piped: bool = False) -> Forked | None:
    """Return *command* as a process that was forked; None where it has to be started.

    Its standard error goes into a pipe where *piped*, else where that of this process goes.
    """
    path, python = env.get(SOCKET, ""), env.get(PYTHON, "")
    if path in ("", "off") or words_of(command) is None or "LOCKSTEP_EXPERIMENT" in env:
        return None
    if python != shutil.which(command[0], path=env.get("PATH")):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    reader, writer = os.pipe() if piped else (-1, os.dup(2))
    try:
        connection.settimeout(_IMPORT_SECONDS)
        connection.connect(path)
        request = {"command": list(command), "env": dict(env), "directory": str(Path.cwd())}
        data = json.dumps(request).encode()
        data = LENGTH.pack(len(data)) + data
        sent = socket.send_fds(connection, [data], [0, 1, writer])
        connection.sendall(data[sent:])
        # One byte at a time: what follows is for the thread that waits for the end.
        line = b""
        while not line.endswith(b"\n"):
            one = connection.recv(1)
            if not one:
                raise ConnectionError("the server has ended")
            line += one
        pid = int(json.loads(line)["pid"])
    except (OSError, ValueError, KeyError):
        connection.close()
        if piped:
            os.close(reader)
        return None
    finally:
        os.close(writer)
    return Forked(connection, pid, os.fdopen(reader, "rb", 0) if piped else None)


class ForkServer:
    """The launcher's end: starts the process that has torch, once it is known to be of use."""

    def __init__(
        self, directory: Path, command: Sequence[str], modules: Sequence[str] = MODULES
    ) -> None:
        self._modules = ",".join(modules)
        self._path = str(directory / "fork.sock")
        self._command = list(command)
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._python = ""

    def start(self, env: Mapping[str, str], processes: int) -> None:
        """Start it, unless it was started before; *env* is that of the ranks."""
        with self._lock:
            if self._child is not None or env.get(SOCKET) == "off":
                return
            python = python_of(self._command, env)
            if not python:
                return
            own = dict(env)
            if processes > 1:
                # Read when torch is imported, so that it must be what ranks are told.
                own.setdefault("OMP_NUM_THREADS", "1")
            server = str(Path(__file__).resolve().parent / "forkserver.py")
            # Room for the ranks' own command lines in the list of processes.
            padding = "x" * max(256, len("\0".join(self._command)))
            arguments = [python, server, self._path, self._modules, padding]
            with contextlib.suppress(OSError):
                self._child = subprocess.Popen(  # noqa: S603  the ranks' own Python
                    arguments, env=own, stdin=subprocess.PIPE, start_new_session=True
                )
                self._python = python

    @property
    def started(self) -> bool:
        """Whether it was ever started."""
        return self._child is not None

    def variables(self) -> dict[str, str]:
        """Return what ranks, and a ``torchrun`` of ours, are told of it."""
        with self._lock:
            if self._child is None or self._child.poll() is not None:
                return {}
            return {SOCKET: self._path, PYTHON: self._python}

    def close(self) -> None:
        """End it, and with it the ranks that were forked."""
        with self._lock:
            if self._child is not None:
                self._child.kill()
                self._child.wait()
                if self._child.stdin is not None:
                    self._child.stdin.close()


def python_of(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the Python that *command* runs its ranks by, as far as that can be told."""
    return shutil.which(_python(command), path=env.get("PATH")) or ""


def _python(command: Sequence[str]) -> str:
    """Return what *command* runs its ranks by, as far as that can be told; else nothing."""
    name = Path(command[0]).name
    if name.startswith("python"):
        return command[0] if words_of(command) is not None else ""
    if any("torchrun" in word or "torch.distributed" in word for word in command):
        return "python3"
    return ""
