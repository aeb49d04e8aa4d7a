"""The record of a job's life, as its controller writes it while things happen.

It is bounded: the newest spans and attempts stay in full, and the seconds of all of them in
``Goodput``. Times are whole seconds, so that spans follow each other without gap or overlap.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from lockstep.api import timestamp
from lockstep.api.goodput import GoodputCause
from lockstep.api.wire import Wire

HistoryPhase = Literal[
    "held",
    "queued",
    "placed",
    "image",
    "data",
    "start",
    "restore",
    "productive",
    "lost",
    "hung",
    "suspended",
]
CAUSE_OF: Final[dict[HistoryPhase, GoodputCause]] = {
    "held": "",
    "queued": "waiting",
    "placed": "starting",
    "image": "starting",
    "data": "starting",
    "start": "starting",
    "restore": "restoring",
    "productive": "productive",
    "lost": "recomputing",
    "hung": "hung",
    "suspended": "",
}
"""To which cause of the goodput the time of a phase counts; to none while the job is kept off."""
IN_WORDS: Final[dict[HistoryPhase, str]] = {
    "held": "is held back",
    "queued": "waits for its place",
    "placed": "has its place, and its pods are set up",
    "image": "pulls its images",
    "data": "waits for its volumes",
    "start": "starts its ranks",
    "restore": "restores its state",
    "productive": "runs",
    "lost": "does lost steps again",
    "hung": "may hang",
    "suspended": "is suspended",
}
MOST_SPANS: Final = 64
MOST_ATTEMPTS: Final = 32
MOST_ENDS: Final = 4
MOST_NODES: Final = 8
LONGEST_TEXT: Final = 300


class Span(Wire, frozen=True, kw_only=True):
    """A time in which the job was in one phase."""

    phase: HistoryPhase
    begin: str
    end: Annotated[str, Meta(description="Empty while it lasts.")] = ""


class RankEnd(Wire, frozen=True, kw_only=True):
    """How a rank, or a container of a pod, ended that should not have."""

    pod: str
    rank: Annotated[int | None, Meta(description="None where a pod failed as a whole.")] = None
    code: int = 0
    signal: int = 0
    line: Annotated[str, Meta(description="The last that it wrote.")] = ""


class Attempt(Wire, frozen=True, kw_only=True):
    """Ranks that were started together, and how they ended."""

    number: Annotated[int, Meta(description="Number of its set of pods, as in their label.")]
    generation: Annotated[int, Meta(description="Number of its world of ranks.")] = 0
    begin: Annotated[str, Meta(description="When it had its place.")]
    end: Annotated[str, Meta(description="Empty while it lasts.")] = ""
    pods: int = 0
    ranks: int = 0
    nodes: Annotated[list[str], Meta(description="The first of its nodes, by name.")] = []
    node_count: int = 0
    step: Annotated[int, Meta(description="Last step that was told; -1: none.")] = -1
    saved: Annotated[int, Meta(description="Last step saved by all ranks; -1: none.")] = -1
    reason: Annotated[str, Meta(description="Why it ended, in a word.")] = ""
    why: Annotated[str, Meta(description="Why it ended.")] = ""
    fault: str = ""
    """Whose fault that was: user, software, hardware, ..."""
    verdict: Annotated[str, Meta(description="What was the matter.")] = ""
    counted: Annotated[bool, Meta(description="Whether it counts towards maxRestarts.")] = False
    ended: Annotated[list[RankEnd], Meta(description="The first ranks that failed.")] = []


class History(Wire, frozen=True):
    """What became of a job, the oldest first."""

    spans: list[Span] = []
    attempts: list[Attempt] = []
    dropped_spans: Annotated[int, Meta(description="Older spans that are not kept.")] = 0
    dropped_attempts: Annotated[int, Meta(description="Older attempts that are not kept.")] = 0
    saves: Annotated[int, Meta(description="Checkpoints that were seen to be saved.")] = 0


def present(history: History) -> Span | None:
    """Return the span that lasts; None once the job has ended, and before it is seen."""
    last = history.spans[-1] if history.spans else None
    return last if last is not None and not last.end else None


def seconds(span: Span | Attempt, now: float) -> float:
    """Return how long *span* lasted, until *now* (Unix time) if it still does."""
    begin = timestamp.read(span.begin) or 0.0
    end = timestamp.read(span.end)
    return max(0.0, (now if end is None else end) - begin)
