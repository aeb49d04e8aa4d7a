"""``python forkserver.py SOCKET MODULES PADDING``: imports modules once, then forks ranks.

The launcher runs it by its file with the ranks' own Python, so that it needs the standard library
alone. A rank that is forked has torch already; importing it anew takes seconds, or ten on a busy
machine. A client hands over command, variables, directory and its three standard files on a
connection of its own, and is told the process and then its end. Where the client hangs up the rank
is killed, and with this process all of them end.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import io
import json
import os
import random
import runpy
import selectors
import signal
import socket
import struct
import sys
import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

LENGTH = struct.Struct("<I")
FILES = 3
_FIRST = 1 << 16
_DIES_WITH_PARENT = 1
_ARGUMENTS_AT, _ARGUMENTS_END = 45, 46
"""Fields of /proc/self/stat behind the name: where the command line lies in memory."""


class Server:
    """Waits for requests and for the ends of what was forked for them."""

    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The name is there once the server listens, and not before.
        self._listener.bind(f"{path}.new")
        self._listener.listen(64)
        os.rename(f"{path}.new", path)  # noqa: PTH104  nothing is imported that need not be
        self._clients: dict[int, socket.socket | None] = {}
        """By process, the connection on which its end is told; None where that is closed."""
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        self._select = selectors.DefaultSelector()

    def serve(self) -> Json | None:
        """Return None once the launcher has gone; in a process that was forked, its request."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for source in (0, self._wake, self._listener):
            self._select.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._select.select():
                if key.fileobj == 0:
                    self._end()
                    return None
                if key.fileobj == self._wake:
                    os.read(self._wake, 4096)
                    self._reap()
                elif key.fileobj is self._listener:
                    request = self._accept()
                    if request is not None:
                        return request
                else:
                    self._hung_up(key.data)

    def _accept(self) -> Json | None:
        client, _ = self._listener.accept()
        client.settimeout(10.0)
        files: list[int] = []
        try:
            request, files = receive(client)
            pid = self._fork()
            if pid == 0:
                client.close()
                _take_on(request, files)
                return request
            with contextlib.suppress(OSError):
                # Here as well as there: as soon as the client knows the process it may end it.
                os.setpgid(pid, pid)
            self._clients[pid] = client
            self._select.register(client, selectors.EVENT_READ, pid)
            _say(client, {"pid": pid})
        except (OSError, ValueError, KeyError) as error:
            sys.stderr.write(f"lockstep-run: a rank is not forked: {error}\n")
            client.close()
        finally:
            for file in files:
                os.close(file)
        return None

    def _fork(self) -> int:
        server = os.getpid()
        with warnings.catch_warnings():
            # Libraries may have threads that wait for work; they see to forks themselves.
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
            if os.getppid() != server:
                os._exit(1)  # it had ended before that was said
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._select.close()
            self._listener.close()
            os.close(self._wake)
            os.close(self._woken)
            for client in self._clients.values():
                if client is not None:
                    client.close()
        return pid

    def _reap(self) -> None:
        for pid in list(self._clients):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                client = self._clients.pop(pid)
                if client is not None:
                    self._select.unregister(client)
                    _say(client, {"code": os.waitstatus_to_exitcode(status)})
                    client.close()

    def _hung_up(self, pid: int) -> None:
        client = self._clients.get(pid)
        if client is not None:
            self._clients[pid] = None
            self._select.unregister(client)
            client.close()
        _kill(pid)

    def _end(self) -> None:
        for pid in self._clients:
            _kill(pid)


def receive(client: socket.socket) -> tuple[Json, list[int]]:
    """Return a request and the files that come with it.

    Raises:
        OSError, ValueError: when it does not come whole.
    """
    data, files, _, _ = socket.recv_fds(client, _FIRST, FILES)
    try:
        if len(files) != FILES:
            raise ValueError(f"{len(files)} files came with a request, not {FILES}")
        (size,) = LENGTH.unpack_from(data)
        while len(data) < LENGTH.size + size:
            more = client.recv(_FIRST)
            if not more:
                raise ValueError("the connection ended within a request")
            data += more
        request: Json = json.loads(data[LENGTH.size :])
    except BaseException:
        for file in files:
            os.close(file)
        raise
    return request, list(files)


def _say(client: socket.socket, words: Json) -> None:
    with contextlib.suppress(OSError):
        client.sendall(json.dumps(words).encode() + b"\n")


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _take_on(request: Json, files: Sequence[int]) -> None:
    """Become the process that *request* describes, but for its program."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["directory"])
    # Each process draws random numbers of its own, as if it had been started.
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    with contextlib.suppress(OSError, ValueError, IndexError):
        _show(request["command"])


def _show(command: Sequence[str]) -> None:
    """Have the process listed by its own command, as far as there is room for it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[_ARGUMENTS_AT]), int(fields[_ARGUMENTS_END])
    text = b"\0".join(word.encode() for word in command)[: end - begin - 1]
    ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


def words_of(command: Sequence[str]) -> list[str] | None:
    """Return what follows Python's own flags in *command*; None where a fork knows not how."""
    words = list(command[1:])
    while words[:1] == ["-u"]:
        words = words[1:]
    known = bool(words) and (words[0] in ("-m", "-c") or not words[0].startswith("-"))
    return words if known and (words[0] not in ("-m", "-c") or len(words) > 1) else None


def run(command: Sequence[str]) -> None:
    """Run the program of *command* as Python does."""
    words = words_of(command) or []
    if "-u" in command[1 : len(command) - len(words)]:
        sys.stdout = io.TextIOWrapper(
            io.FileIO(1, "w", closefd=False),
            sys.stdout.encoding,
            sys.stdout.errors,
            write_through=True,
        )
    # The one of now stays as it is, but out of sight.
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    safe = getattr(sys.flags, "safe_path", False)
    if words[0] == "-m":
        sys.argv = words[1:]
        if not safe:
            sys.path.insert(0, str(Path.cwd()))
        runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]
        return
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        path, source = "<string>", words[1].encode()
    else:
        sys.argv = words
        path, source = words[0], Path(words[0]).read_bytes()
        main.__file__ = path
    if not safe:
        folder = "" if words[0] == "-c" else str(Path(path).resolve().parent)
        sys.path.insert(0, folder)
    exec(compile(source, path, "exec"), main.__dict__)  # noqa: S102  the user's own program


def _observed() -> None:
    """Begin what a rank's ``sitecustomize`` begins; this process was none when that ran."""
    path = Path(__file__).resolve().parent / "site" / "sitecustomize.py"
    spec = importlib.util.spec_from_file_location("_lockstep_site", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.begin()


def main(arguments: Sequence[str]) -> None:
    """Import, serve; run the rank's program in each process that is forked."""
    sys.path.pop(0)
    server = Server(arguments[0])
    for name in arguments[1].split(","):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    # What is there stays shared with the ranks.
    gc.freeze()
    request = server.serve()
    if request is None:
        return
    del server
    gc.unfreeze()
    _observed()
    try:
        run(request["command"])
    except Exception as error:
        trace = error.__traceback__
        # Not the lines of this file.
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
