"""Reads dumps of flight recorders in a process of its own, which may end at any of them.

A dump comes from anywhere. It is read without running code: a pickle that names anything of Python
is refused, and memory and time are bounded by the kernel. Paths come in, one a line; for each, a
line of JSON goes out.
"""

from __future__ import annotations

import ast
import json
import pickle
import re
import resource
import sys
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from lockstep.api.rank_evidence import RankSeen
from lockstep.health.core.hang import rank_seen
from lockstep.health.core.traces import NoDump

LONGEST_DUMP: Final = 256 << 20
LONGEST_LITERAL: Final = 16 << 20
MEMORY: Final = 3 << 30
_RANKS: Final = (
    re.compile(r"rank[-_.]?(\d{1,7})(?!\d)", re.IGNORECASE),
    re.compile(r"(\d{1,7})(?:\.\w+)*$"),
)


class _Plain(pickle.Unpickler):
    """Takes plain values alone."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse what a pickle names."""
        raise NoDump(f"it names {module}.{name}: only plain values are read")

    def persistent_load(self, _: Any) -> NoReturn:
        """Refuse references to outside."""
        raise NoDump("it refers to something outside of itself")


def parse(data: bytes) -> object:
    """Return the values of a dump, pickled or in JSON.

    Raises:
        NoDump: when it is neither, or names anything of Python.
    """
    try:
        data = data.removeprefix(b"\xef\xbb\xbf")
        if data.lstrip()[:1] in (b"{", b"["):
            return _text(data)
        return _Plain(BytesIO(data)).load()
    except NoDump:
        raise
    except RecursionError:
        raise NoDump("it is nested too deep") from None
    except MemoryError:
        raise NoDump("it asks for more memory than dumps need") from None
    except Exception as error:
        raise NoDump(f"{type(error).__name__}: {error}"[:200]) from None


def _text(data: bytes) -> object:
    """Return the values of a dump in JSON, or in Python's way of writing values."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        if b"'entries'" not in data[:LONGEST_LITERAL]:
            raise
    if len(data) > LONGEST_LITERAL:
        raise NoDump(f"it has {len(data)} bytes of text; at most {LONGEST_LITERAL} are read")
    return ast.literal_eval(data.decode())


def rank_in(name: str) -> int | None:
    """Return the rank that a file called *name* is of: after "rank", else the number at its end."""
    found = next(filter(None, (pattern.search(name) for pattern in _RANKS)), None)
    return None if found is None else int(found[1])


def read(path: Path) -> RankSeen:
    """Return what the dump at *path* says; its name tells the rank.

    Raises:
        NoDump: when it is no dump.
    """
    rank = rank_in(path.name)
    if rank is None:
        raise NoDump("its name does not tell a rank, as rank3 or trace_3.json do")
    size = path.stat().st_size
    if size > LONGEST_DUMP:
        raise NoDump(f"it has {size} bytes; at most {LONGEST_DUMP} are read")
    return rank_seen(parse(path.read_bytes()), rank)


def main() -> None:
    """Read the dumps whose paths come in."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        try:
            out.write(msgspec.json.encode(read(Path(line.rstrip(b"\n").decode()))))
        except (NoDump, OSError) as error:
            out.write(json.dumps({"error": str(error)}).encode())
        out.write(b"\n")
        out.flush()


if __name__ == "__main__":
    main()
