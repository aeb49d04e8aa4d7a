"""Lines of logs as they lie in files: whose they are and when they were written, as far as told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from lockstep.health.core.diagnose import NOBODY, Line

LONGEST: Final = 64 << 10
_RANK: Final = re.compile(r"\[(?:default)?(\d{1,6})\]:|\[[Rr]ank ?(\d{1,6})\]")
_RANK_IN_NAME: Final = re.compile(r"rank[-_.]?(\d{1,6})", re.IGNORECASE)
_NODE_IN_NAME: Final = re.compile(
    r"((?:node|host|gpu|worker)[-_]?[\w-]*?\d+)(?=[._](?:kern|kernel|dmesg|log|syslog)|$)"
)
_TIME: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z)?")
_SYSLOG: Final = re.compile(r"^\w{3} [ \d]\d \d\d:\d\d:\d\d ([\w.-]+) kernel: ")


def lines_of(name: str, data: bytes) -> Iterator[Line]:
    """Return the lines of a file called *name*; what is not text is replaced."""
    in_name = _RANK_IN_NAME.search(name)
    rank = int(in_name[1]) if in_name else NOBODY
    host = _NODE_IN_NAME.search(name)
    node = host[1] if host else ""
    for raw in data.split(b"\n"):
        text = raw[:LONGEST].decode(errors="replace").replace("\r", "")
        if text.strip():
            yield _line(text, rank, node)


def _line(text: str, rank: int, node: str) -> Line:
    head = text[:200]
    said = _RANK.search(head)
    if said:
        rank = int(said[1] or said[2])
    if logged := _SYSLOG.match(head):
        node = logged[1]
    return Line(text, node, rank, _time(head))


def _time(text: str) -> float | None:
    found = _TIME.search(text)
    if found is None:
        return None
    day, clock, part, _ = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return at + (float(f"0.{part}") if part else 0.0)
