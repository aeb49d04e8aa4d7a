"""A command in a container over a WebSocket: its input, output and exit code; files through tar."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import aiohttp

from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.kube.sockets import websocket

PROTOCOLS = ("v5.channel.k8s.io",)
STDIN, STDOUT, STDERR, END, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
CHUNK = 64 << 10

Take = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Command:
    """What to run in which container; nothing means to attach to what runs."""

    pod: str
    argv: tuple[str, ...]
    container: str
    stdin: bool
    tty: bool


async def converse(session: Session, command: Command) -> int:
    """Run a command with this process's input and output; return its exit code.

    Raises:
        CommandFailed: when it cannot be run.
    """
    with _raw_terminal(command.tty):
        source = _typed() if command.stdin else None
        return await _run(session, command, source, _to(sys.stdout), _to(sys.stderr))


async def download(session: Session, pod: str, container: str, path: str, place: Path) -> None:
    """Copy a file or directory out of a pod, as *place* or into the directory *place*."""
    source = PurePosixPath(path)
    argv = ("tar", "-cf", "-", "-C", str(source.parent), "--", source.name or ".")
    said: list[bytes] = []
    with tempfile.TemporaryFile() as kept, tempfile.TemporaryDirectory() as folder:
        code = await _run(
            session, Command(pod, argv, container, False, False), None, kept.write, said.append
        )
        if code:
            raise CommandFailed(f"{path} of pod {pod}: {_text(said) or f'tar ended with {code}'}")
        await asyncio.to_thread(_unpack, kept, Path(folder), place)


async def unpacked(
    session: Session, pod: str, container: str, argv: tuple[str, ...], folder: Path
) -> str:
    """Unpack the tar that a command in a pod writes into *folder*; return why it failed, or ""."""
    said: list[bytes] = []
    with tempfile.TemporaryFile() as kept:
        command = Command(pod, argv, container, False, False)
        code = await _run(session, command, None, kept.write, said.append)
        if code:
            return _text(said) or f"{argv[0]} ended with {code}"
        await asyncio.to_thread(_extract, kept, folder)
    return ""


def _extract(packed: IO[bytes], folder: Path) -> None:
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        archive.extractall(folder, filter="data")


def _unpack(packed: IO[bytes], folder: Path, place: Path) -> None:
    _extract(packed, folder)
    (found,) = folder.iterdir()
    shutil.move(found, place / found.name if place.is_dir() else place)


def _pack(source: Path, name: str, packed: IO[bytes]) -> None:
    if not source.exists():
        raise BadInput(f"{source}: No such file or directory", "name a file or a directory here")
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(source.resolve(), arcname=name)
    packed.seek(0)


async def upload(session: Session, pod: str, container: str, source: Path, place: str) -> None:
    """Copy a file or directory into a directory of a pod, or to a new name there."""
    target = PurePosixPath(place)
    test = Command(pod, ("test", "-d", place), container, False, False)
    into = await _run(session, test, None, _drop, _drop) == 0
    folder, name = (target, source.name) if into else (target.parent, target.name)
    argv = ("tar", "-xmf", "-", "-C", str(folder))
    said: list[bytes] = []
    with tempfile.TemporaryFile() as packed:
        await asyncio.to_thread(_pack, source, name, packed)
        command = Command(pod, argv, container, True, False)
        code = await _run(session, command, _chunks(packed), _drop, said.append)
    if code:
        raise CommandFailed(f"{place} of pod {pod}: {_text(said) or f'tar ended with {code}'}")


async def _run(
    session: Session, command: Command, source: AsyncIterator[bytes] | None, out: Take, err: Take
) -> int:
    what = "exec" if command.argv else "attach"
    path = f"/api/v1/namespaces/{session.namespace}/pods/{command.pod}/{what}"
    query = [("command", one) for one in command.argv]
    query += [("container", command.container)] if command.container else []
    wanted = {"stdin": source is not None, "stdout": True, "stderr": not command.tty}
    query += [(name, "true") for name, on in {**wanted, "tty": command.tty}.items() if on]
    async with websocket(session.client.config, path, query, PROTOCOLS) as socket:
        sending = asyncio.create_task(_send(socket, source, tty=command.tty))
        try:
            return await _receive(socket, out, err)
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await sending


async def _send(
    socket: aiohttp.ClientWebSocketResponse, source: AsyncIterator[bytes] | None, *, tty: bool
) -> None:
    if tty:
        width, height = os.get_terminal_size(sys.stdin.fileno())
        size = json.dumps({"Width": width, "Height": height}).encode()
        await socket.send_bytes(bytes([RESIZE]) + size)
    if source is None:
        return
    async for chunk in source:
        await socket.send_bytes(bytes([STDIN]) + chunk)
    await socket.send_bytes(bytes([CLOSE, STDIN]))


async def _receive(socket: aiohttp.ClientWebSocketResponse, out: Take, err: Take) -> int:
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == STDOUT:
            out(data)
        elif channel == STDERR:
            err(data)
        elif channel == END:
            return _code(data)
    raise CommandFailed("the connection ended before the command did", "the node may be gone")


def _code(told: bytes) -> int:
    """Return the exit code that the server tells.

    Raises:
        CommandFailed: when the command was not run.
    """
    status = json.loads(told)
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise CommandFailed(status.get("message") or "the command could not be run")


def _to(stream: Any) -> Take:
    def take(data: bytes) -> None:
        stream.buffer.write(data)
        stream.buffer.flush()

    return take


def _drop(_: bytes) -> None:
    return None


def _text(said: list[bytes]) -> str:
    return b"".join(said).decode(errors="replace").strip()


async def _typed() -> AsyncIterator[bytes]:
    """Yield what is typed or piped in, until it ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    except ValueError:  # a file is no pipe
        async for chunk in _chunks(sys.stdin.buffer):
            yield chunk
        return
    while chunk := await reader.read(CHUNK):
        yield chunk


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, CHUNK):
        yield chunk


@contextlib.contextmanager
def _raw_terminal(wanted: bool) -> Iterator[None]:
    """Let every key go to the command as it is typed.

    Raises:
        BadInput: when there is no terminal.
    """
    if not wanted:
        yield
        return
    if not sys.stdin.isatty():
        raise BadInput("--tty: standard input is no terminal", "leave -t out")
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
