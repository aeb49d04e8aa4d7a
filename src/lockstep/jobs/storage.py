"""A job whose ranks fail while the storage of their nodes is away: it waits."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.training import TrainingJobStatus
from lockstep.health.core.policy import AWAY
from lockstep.health.core.policy import away as gone
from lockstep.jobs import conditions as cond
from lockstep.jobs import failures
from lockstep.jobs.job_state import Seen

REASON: Final = "StorageAway"
QUIET: Final = AWAY / 2
"""Seconds without a word of storage after which ranks start again."""


def away(seen: Seen, now: float) -> list[str]:
    """Return the nodes of the job's pods that tell that their storage is away."""
    known = ((node, one) for node, found in seen.findings.items() for one in found)
    return gone(known, now + AWAY - QUIET)


def wait(status: TrainingJobStatus, nodes: list[str], why: str, now: float) -> TrainingJobStatus:
    """Return *status* with the next generation, which starts when the storage is back."""
    text = f"storage is away on {', '.join(nodes[:4])}{', ...' if len(nodes) > 4 else ''}; {why}"
    status = failures.regroup(structs.replace(status, retry_at=timestamp.show(now + QUIET)))
    status = structs.replace(status, message=text)
    return cond.put(status, cond.RESTARTING, True, cond.Why(REASON, text), now)


def held(seen: Seen, status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    """Return *status* with a later start, where it waits for storage that is away still."""
    known = cond.find(status, cond.RESTARTING)
    waits = known is not None and known.status == "True" and known.reason == REASON
    due = timestamp.read(status.retry_at)
    if not waits or due is None or due > now or not away(seen, now):
        return status
    return structs.replace(status, retry_at=timestamp.show(now + QUIET))
