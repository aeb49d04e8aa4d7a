"""When what waits is to start, as a pod on its own says it: behind why it waits.

A pod has no status field for it. The message of its condition ``PodScheduled`` goes as soon as it
has a node, and so does what stands there.
"""

from __future__ import annotations

from typing import NamedTuple

from lockstep.api import timestamp

STARTS = "; estimated start: "
UNTOLD = "; no estimated start"
NOT_BEFORE = ", not before "


class Start(NamedTuple):
    """When it is to start, or why that is not known."""

    at: str | None = None
    why: str = ""
    not_before: str | None = None
    """Until when it surely does not start, where no more than that is known."""


def with_start(why: str, start: Start | None) -> str:
    """Return *why* a pod waits, and behind it when it is to start."""
    if start is None:
        return why
    if start.at is not None:
        return f"{why}{STARTS}{start.at}"
    limit = f"{NOT_BEFORE}{start.not_before}" if start.not_before is not None else ""
    return f"{why}{UNTOLD}{limit}: {start.why}"


def split_start(message: str) -> tuple[str, Start | None]:
    """Return why a pod waits, and when it is to start where the *message* says so."""
    why, found, at = message.rpartition(STARTS)
    if found and timestamp.read(at) is not None:
        return why, Start(at=at)
    why, found, rest = message.rpartition(UNTOLD)
    limit, _, untold = rest.partition(": ")
    not_before = limit.removeprefix(NOT_BEFORE)
    if found and not limit:
        return why, Start(why=untold)
    if found and timestamp.read(not_before) is not None:
        return why, Start(why=untold, not_before=not_before)
    return message, None
