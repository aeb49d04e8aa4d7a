"""``python -m lockstep.notebooks.inside.ssh``: an SSH server on standard input and output.

It runs in a pod for one connection, which comes through the API server, where its user proved who
they are. Nothing listens. The one key that it takes is given as an argument.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import socket
import struct
import sys
import termios
from typing import Any, Final

import asyncssh

_CHUNK: Final = 64 << 10


class _Server(asyncssh.SSHServer):
    """Takes any user name, for the key and the API server say who it is."""

    def connection_requested(self, *_: Any) -> bool:
        """Let the client reach ports of the pod, as its user may by port-forward too."""
        return True


async def _run(process: asyncssh.SSHServerProcess[bytes]) -> None:
    shell = os.environ.get("SHELL", "/bin/sh")
    argv = [shell, "-c", process.command] if process.command else [shell, "-l"]
    environ = {**os.environ, **{str(k): str(v) for k, v in process.env.items()}}
    if process.term_type:
        await _in_terminal(process, argv, {**environ, "TERM": process.term_type})
        return
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(
        *argv, env=environ, stdin=pipe, stdout=pipe, stderr=pipe
    )
    await process.redirect(running.stdin, running.stdout, running.stderr)
    process.exit(_code(await running.wait()))


async def _in_terminal(
    process: asyncssh.SSHServerProcess[bytes], argv: list[str], environ: dict[str, str]
) -> None:
    own, others = pty.openpty()
    _resize(own, process.term_size)
    running = await asyncio.create_subprocess_exec(
        *argv, env=environ, stdin=others, stdout=others, stderr=others, preexec_fn=_take_terminal
    )
    os.close(others)
    await process.redirect(os.dup(own), own, recv_eof=False, send_eof=False)
    process.exit(_code(await running.wait()))


def _take_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _resize(terminal: int, size: tuple[int, int, int, int]) -> None:
    columns, rows, *_ = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _code(code: int) -> int:
    return code if code >= 0 else 128 - code


async def serve(key: str) -> None:
    """Serve one connection on standard input and output to the bearer of *key*."""
    near, far = socket.socketpair()
    far.setblocking(False)
    copying = [asyncio.create_task(_inwards(far)), asyncio.create_task(_outwards(far))]
    try:
        server = await asyncssh.run_server(
            near,
            server_factory=_Server,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            authorized_client_keys=asyncssh.import_authorized_keys(key),
            process_factory=_run,
            sftp_factory=True,
            encoding=None,
            allow_scp=True,
        )
        await server.wait_closed()
        near.close()
        await copying[1]
    finally:
        for task in copying:
            task.cancel()


async def _inwards(far: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    while data := await reader.read(_CHUNK):
        await loop.sock_sendall(far, data)
    far.shutdown(socket.SHUT_WR)


async def _outwards(far: socket.socket) -> None:
    while data := await asyncio.get_running_loop().sock_recv(far, _CHUNK):
        await asyncio.to_thread(_write_all, data)


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    """Serve the bearer of the key that is the first argument."""
    asyncio.run(serve(sys.argv[1]))


if __name__ == "__main__":
    main()
