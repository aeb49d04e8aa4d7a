"""Reading a container's log: the lines that were asked for, without their marks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

POLL = 0.1
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Query:
    """Which part of a log is wanted."""

    follow: bool = False
    tail: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One entry: when, what, and whether its end is in another entry."""

    time: bytes
    text: bytes
    partial: bool

    @classmethod
    def parse(cls, raw: bytes) -> Line | None:
        """Return the entry in *raw*, or none when it is not one."""
        parts = raw.rstrip(b"\n").split(b" ", 3)
        if len(parts) != 4 or parts[2] not in (b"F", b"P"):
            return None
        return cls(parts[0], parts[3], parts[2] == b"P")


def stamp(moment: datetime) -> bytes:
    """Return *moment* as entries write times, so that the two compare as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


def shown(entries: Iterator[Line], query: Query) -> Iterator[bytes]:
    """Return the output for *entries*: joined where they are parts of one line."""
    continued = False
    since = stamp(query.since) if query.since is not None else b""
    for entry in entries:
        if entry.time < since:
            continue
        head = b"" if continued or not query.timestamps else entry.time + b" "
        yield head + entry.text + (b"" if entry.partial else b"\n")
        continued = entry.partial


def files_of(log: Path) -> list[Path]:
    """Return the files of *log*, oldest first."""
    older = sorted(
        (one for one in log.parent.glob(f"{log.name}.*") if one.suffix[1:].isdigit()),
        key=lambda one: -int(one.suffix[1:]),
    )
    return [*older, *([log] if log.exists() else [])]


def entries(files: list[Path]) -> Iterator[Line]:
    """Return the entries of *files* in order."""
    for one in files:
        with one.open("rb") as file:
            for raw in file:
                line = Line.parse(raw)
                if line is not None:
                    yield line


def last(files: list[Path], count: int, position: int | None = None) -> list[Line]:
    """Return the entries that make up the last *count* lines, reading from the end.

    Of the newest file only what lies before *position* counts.
    """
    kept: list[Line] = []
    lines = 0
    for one in reversed(files):
        for raw in _backwards(one, position if one == files[-1] else None):
            line = Line.parse(raw)
            if line is None:
                continue
            if not line.partial or not kept:
                lines += 1
                if lines > count:
                    return kept[::-1]
            kept.append(line)
    return kept[::-1]


def _backwards(path: Path, end: int | None) -> Iterator[bytes]:
    """Return the lines of a file from *end*, by default its own."""
    with path.open("rb") as file:
        position = file.seek(0, 2) if end is None else end
        rest = b""
        while position > 0:
            step = min(CHUNK, position)
            position -= step
            file.seek(position)
            parts = (file.read(step) + rest).split(b"\n")
            rest = parts[0]
            yield from (part for part in reversed(parts[1:]) if part)
        if rest:
            yield rest


async def read(log: Path, query: Query, running: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Return the part of *log* that *query* asks for; follow it while *running* says so."""
    left = query.limit_bytes
    async for piece in _pieces(log, query, running):
        if left is None:
            yield piece
            continue
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


async def _pieces(log: Path, query: Query, running: Callable[[], bool]) -> AsyncIterator[bytes]:
    inode, position = _mark(log)
    files = files_of(log)
    if query.tail is None:
        found = _until(files, log, position)
    else:
        found = iter(await asyncio.to_thread(last, files, query.tail, position))
    output = shown(found, query)
    while piece := await asyncio.to_thread(_take, output):
        yield piece
    if query.follow:
        async for piece in _follow(log, inode, position, query, running):
            yield piece


def _mark(log: Path) -> tuple[int, int]:
    """Return which file the log is now, and where its last whole entry ends."""
    if not log.exists():
        return 0, 0
    with log.open("rb") as file:
        size = file.seek(0, 2)
        start = max(0, size - CHUNK)
        file.seek(start)
        end = file.read().rfind(b"\n")
    return log.stat().st_ino, start + end + 1


def _take(output: Iterator[bytes]) -> bytes:
    """Return the next part of *output*, of about the size of a chunk; empty at its end."""
    taken: list[bytes] = []
    size = 0
    for piece in output:
        taken.append(piece)
        size += len(piece)
        if size >= CHUNK:
            break
    return b"".join(taken)


def _until(files: list[Path], log: Path, position: int) -> Iterator[Line]:
    """Return the entries of *files*, of the newest only those before *position*."""
    yield from entries([one for one in files if one != log])
    if log in files:
        read = 0
        with log.open("rb") as file:
            for raw in file:
                read += len(raw)
                if read > position:
                    return
                line = Line.parse(raw)
                if line is not None:
                    yield line


async def _follow(
    log: Path, inode: int, position: int, query: Query, running: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Return what is appended after *position*, across rotations, until the container ends."""
    rest = b""
    while True:
        alive = running()
        data, inode, position = _appended(log, inode, position)
        rest += data
        whole, newline, rest = rest.rpartition(b"\n")
        lines = (Line.parse(raw) for raw in (whole + newline).splitlines(keepends=True))
        output = b"".join(shown((one for one in lines if one is not None), query))
        if output:
            yield output
        elif not alive:
            return
        else:
            await asyncio.sleep(POLL)


def _appended(log: Path, inode: int, position: int) -> tuple[bytes, int, int]:
    """Return what came after *position*, and where to go on; a rotated file is read to its end."""
    if not log.exists():
        return b"", inode, position
    now = log.stat().st_ino
    data = b""
    if now != inode:
        rotated = log.with_name(log.name + ".1")
        if inode and rotated.exists() and rotated.stat().st_ino == inode:
            data = rotated.read_bytes()[position:]
        position = 0
    with log.open("rb") as file:
        file.seek(position)
        fresh = file.read()
    return data + fresh, now, position + len(fresh)
