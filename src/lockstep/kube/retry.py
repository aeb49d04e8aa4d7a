"""Whether a failed request is sent again, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from lockstep.api.backoff import Backoff
from lockstep.kube.errors import ApiError, TooManyRequests, Unreachable

TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
BACKOFF: Final = Backoff(initial=0.25, cap=10.0, jitter=1.0)
MAX_ATTEMPTS: Final = 8
BUDGET_CAUSE: Final = "DisruptionBudget"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried: *number* counts from 1, *left* is the time until the deadline."""

    number: int
    left: float
    repeatable: bool
    """Whether doing it twice is the same as doing it once."""


def wait_before_retry(error: ApiError, attempt: Attempt, rng: random.Random) -> float | None:
    """Return the seconds to wait before the next attempt, or None to give the error up.

    What is not repeatable is sent again only when the server has certainly not acted on it.
    """
    if attempt.number >= MAX_ATTEMPTS or not _worth_it(error, attempt.repeatable):
        return None
    wait = BACKOFF.delay(attempt.number, rng)
    if error.retry_after is not None:
        # Everybody is told the same number; a little jitter keeps them from returning together.
        wait = error.retry_after + 0.1 * wait
    return wait if wait < attempt.left else None


def _worth_it(error: ApiError, repeatable: bool) -> bool:
    if isinstance(error, Unreachable):
        return error.reason == "Connection" and (repeatable or not error.acted)
    if isinstance(error, TooManyRequests):
        # A disruption budget answers 429 as well, and it is the caller who must know that.
        return all(cause.reason != BUDGET_CAUSE for cause in error.causes)
    return error.status in TRANSIENT and repeatable
