"""Lines of logs as they lie in files: whose they are and when they were written, as far as told.

A line that a collector wrapped in JSON is unwrapped. One without a time was written when the last
before it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from lockstep.health.core.lines import NO_RANK, Line

LONGEST: Final = 64 << 10
_RANK: Final = re.compile(r"\[(?:default)?(\d{1,6})\]:|\[[Rr]ank ?(\d{1,6})\]|^\[1,(\d{1,6})\]<std")
_RANK_IN_NAME: Final = re.compile(r"rank[-_.]?(\d{1,6})", re.IGNORECASE)
_NODE_IN_NAME: Final = re.compile(
    r"((?:node|host|gpu|worker)[-_]?[\w-]*?\d+)(?=[._](?:kern|kernel|dmesg|log|syslog)|$)"
)
_TIME: Final = re.compile(r"\b(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?")
_SHORT_TIME: Final = re.compile(r"(?:^|[\s\[])[EWIF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.(\d{1,9})")
"""As glog writes it, without a year: E816 01:45:40.184373931."""
_SYSLOG: Final = re.compile(r"^\w{3} [ \d]\d \d\d:\d\d:\d\d ([\w.-]+) kernel: ")
_TEXTS: Final = ("log", "message", "msg", "MESSAGE", "@message", "text", "textPayload")
_HOSTS: Final = ("node", "node_name", "host", "hostname", "_HOSTNAME", "nodename")
_TIMES: Final = ("time", "timestamp", "@timestamp", "ts", "asctime")


def lines_of(name: str, data: bytes) -> Iterator[Line]:
    """Return the lines of a file called *name*; what is not text is replaced."""
    in_name = _RANK_IN_NAME.search(name)
    rank = int(in_name[1]) if in_name else NO_RANK
    host = _NODE_IN_NAME.search(name)
    node = host[1] if host else ""
    at: float | None = None
    for raw in _decoded(data).split("\n"):
        text = raw[:LONGEST].replace("\r", "").replace("\x00", "")
        if not text.strip():
            continue
        for line in _unwrapped(text, rank, node):
            at = line.at if line.at is not None else at
            yield Line(line.text, line.node, line.rank, at, name)


def _decoded(data: bytes) -> str:
    """Return text as UTF-8, UTF-16 with its mark, or what Chinese Windows and old tools write."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        bad = data.decode(errors="replace")
    try:
        return data.decode("gb18030") if bad.count("\ufffd") > 8 and b"\x00" not in data else bad
    except UnicodeDecodeError:
        return bad


def _unwrapped(text: str, rank: int, node: str) -> Iterator[Line]:
    """Yield the lines that *text* holds: those of its message where it is an object in JSON."""
    told = _object(text)
    said = next((told[key] for key in _TEXTS if isinstance(told.get(key), str)), None)
    if said is None:
        yield _line(text, rank, node)
        return
    where = told.get("kubernetes")
    places = {**(where if isinstance(where, Mapping) else {}), **told}
    node = next((str(places[k]) for k in _HOSTS if isinstance(places.get(k), str)), node)
    if isinstance(said_rank := places.get("rank"), int) and said_rank >= 0:
        rank = said_rank
    at = next((_time(str(told[key])) for key in _TIMES if key in told), None)
    for one in said.splitlines():
        if one.strip():
            line = _line(one, rank, node)
            yield Line(line.text, line.node, line.rank, line.at if line.at is not None else at)


def _object(text: str) -> Mapping[str, Any]:
    begin = text.find("{")
    if not 0 <= begin < 64 or not text.rstrip().endswith("}"):
        return {}
    try:
        found = msgspec.json.decode(text[begin:])
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _line(text: str, rank: int, node: str) -> Line:
    head = text[:200]
    said = _RANK.search(head)
    if said:
        rank = int(said[1] or said[2] or said[3])
    if logged := _SYSLOG.match(head):
        node = logged[1]
    return Line(text, node, rank, _time(head))


def _time(text: str) -> float | None:
    if found := _TIME.search(text):
        year, month, day, clock, part = found.groups()
    elif found := _SHORT_TIME.search(text):
        year, (month, day, clock, part) = "1970", found.groups()
    else:
        return None
    try:
        at = datetime.fromisoformat(f"{year}-{month:0>2}-{day}T{clock}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return at.timestamp() + (float(f"0.{part}") if part else 0.0)
