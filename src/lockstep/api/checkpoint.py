"""What a job says of how it saves its state, and when it was last saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from lockstep.api import timestamp
from lockstep.api.duration import Duration
from lockstep.api.names import CHECKPOINT_ANNOTATION
from lockstep.api.timestamp import Time
from lockstep.api.wire import Wire


class Checkpoint(Wire, frozen=True):
    """That a job saves its state, so that it goes on from there when it loses its place."""

    interval: Duration | None = None
    """Longest time between two saves: what is lost at most with its place where it is not known
    when it was last saved."""
    directory: str = ""
    """Directory in the main container, on a volume that all pods of the job have, or a URL such as
    s3://bucket/prefix, where the launcher saves what Checkpointer keeps, every interval (chosen by
    what a save costs where it is left out) and when a pod is told to end."""


LastCheckpoint = Annotated[
    Time | None, Meta(description="When its state was last saved; the work since then is at stake.")
]
QueuedAt = Annotated[
    str | None,
    Meta(
        description="Since when it has stood in line for the first time. Its place in its queue "
        "goes by that, also after it was suspended."
    ),
]


def last(annotations: Mapping[str, str], shown: str | None) -> float | None:
    """Return the Unix time of the last save: the later of the annotation and of what is *shown*.

    None where neither says so; what is no time says nothing.
    """
    known = [timestamp.read(text) for text in (annotations.get(CHECKPOINT_ANNOTATION), shown)]
    return max((moment for moment in known if moment is not None), default=None)


def unreadable(annotations: Mapping[str, str], shown: str | None) -> str:
    """Return what is wrong with what is said of the last save, empty for nothing."""
    said = {
        f"annotation {CHECKPOINT_ANNOTATION}": annotations.get(CHECKPOINT_ANNOTATION),
        "status.lastCheckpoint": shown,
    }
    for where, text in said.items():
        if text is not None and timestamp.read(text) is None:
            return (
                f"{where} is {text!r}, which is not a time and does not count; "
                "write one such as 2026-03-01T10:00:00Z"
            )
    return ""
