"""What to do about a month's waste: a sentence, its money and a command. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lockstep.insight.history.records import FREE
from lockstep.insight.report.summing import ADVISED, REST, STARTING, Amount, Report, Waste, wastes

FREE_FOR: Final = 0.9
"""Part of its time from which on a free node is told."""
SLOW_START: Final = 0.1
"""Part of a job's time from which on its starting is told."""
LEAST_HOURS: Final = 1.0
"""GPU-hours below which nothing is told."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One thing to do; *saves* is what the month would have cost less."""

    words: str
    command: str
    saves: Amount


def recommendations(found: Report) -> list[Recommendation]:
    """Return what would have saved most, first."""
    told = (_of(found, one) for one in wastes(found) if one.amount.gpu_hours >= LEAST_HOURS)
    return [one for each in told for one in each]


def _of(found: Report, waste: Waste) -> Iterator[Recommendation]:
    namespace, job = waste.job
    where = f"-n {shlex.quote(namespace)}"
    if waste.kind == FREE:
        share = waste.amount.gpu_hours / found.nodes[waste.node].all.gpu_hours
        if share >= FREE_FOR:
            words = f"Node {waste.node} was free for {share:.0%} of its time: give it back."
            yield Recommendation(
                words, f"lockstep node drain {shlex.quote(waste.node)}", waste.amount
            )
    elif waste.kind == REST:
        words = (
            f"Cards of node {waste.node} were shared with a part left over: choose shares that "
            "fill a card."
        )
        yield Recommendation(words, "lockstep top shares", waste.amount)
    elif waste.kind == STARTING:
        share = waste.amount.gpu_hours / found.jobs[waste.job].held.gpu_hours
        if share >= SLOW_START:
            words = (
                f"Job {namespace}/{job} held its GPUs for {share:.0%} of its time before its "
                "containers ran: its events say for what it waited."
            )
            yield Recommendation(
                words, f"lockstep describe {shlex.quote(job)} {where}", waste.amount
            )
    elif waste.kind == ADVISED:
        words = f"Steps of job {namespace}/{job} lose time to {waste.cause}: mend it."
        yield Recommendation(words, f"lockstep advise {shlex.quote(job)} {where}", waste.amount)
