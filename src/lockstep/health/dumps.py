"""Dumps of flight recorders: read by children that may not outlive a hostile one."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from lockstep.api.rank_evidence import RankSeen
from lockstep.health.dump_child import rank_in

EACH: Final = 30.0
"""Seconds that one dump may take."""
LONGEST_ANSWER: Final = 8 << 20
_COMMAND: Final = (sys.executable, "-P", "-m", "lockstep.health.dump_child")
_FEW: Final = 64


@dataclass(frozen=True, slots=True)
class Dumps:
    """What was read, by rank, and why the rest was not."""

    seen: dict[int, RankSeen] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    """Ranks that wrote a dump which cannot be read: they lived when the job stood."""

    def known(self) -> dict[int, RankSeen]:
        """Return what is known of each rank, also of those that only wrote something."""
        return {**{rank: RankSeen(rank=rank) for rank in self.unread}, **self.seen}


class _Answer(msgspec.Struct):
    error: str = ""


def read(paths: Sequence[Path], seconds: float = EACH) -> Dumps:
    """Return what the dumps at *paths* say; each may take so many *seconds*."""
    found = Dumps()
    size = max(_FEW, -(-len(paths) // (os.cpu_count() or 1)))
    parts = [paths[at : at + size] for at in range(0, len(paths), size)]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for answers in pool.map(lambda part: list(_part(part, seconds)), parts):
            for path, answer in answers:
                if isinstance(answer, str):
                    found.refused[str(path)] = answer
                    if (rank := rank_in(path.name)) is not None:
                        found.unread.add(rank)
                elif answer.rank in found.seen:
                    found.refused[str(path)] = f"there are two dumps of rank {answer.rank}"
                else:
                    found.seen[answer.rank] = answer
    return found


def _part(paths: Iterable[Path], seconds: float) -> Iterator[tuple[Path, RankSeen | str]]:
    child: subprocess.Popen[bytes] | None = None
    try:
        for path in paths:
            child = child or _started()
            answer = _ask(child, path, seconds)
            if answer is None:
                child.kill()
                child.wait()
                _close(child)
                child = None
                yield path, f"it could not be read within {seconds:.0f} s and the memory for it"
            else:
                yield path, _decoded(answer)
    finally:
        if child is not None:
            child.kill()
            child.wait()
            _close(child)


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own module
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


def _ask(child: subprocess.Popen[bytes], path: Path, seconds: float) -> bytes | None:
    """Return the line with which *child* answers; None where it ends, or takes too long."""
    assert child.stdin is not None and child.stdout is not None  # noqa: S101 - asked for
    if "\n" in str(path):
        return b'{"error": "its name holds a line break"}'
    try:
        child.stdin.write(os.fsencode(path.absolute()) + b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        return None
    fd, data = child.stdout.fileno(), b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([fd], [], [], seconds)
        if not ready or len(data) > LONGEST_ANSWER:
            return None
        more = os.read(fd, 1 << 20)
        if not more:
            return None
        data += more
    return data


def _decoded(answer: bytes) -> RankSeen | str:
    error = msgspec.json.decode(answer, type=_Answer).error
    return error or msgspec.json.decode(answer, type=RankSeen)
