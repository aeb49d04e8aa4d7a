"""Waits, and which failures are worth another attempt."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.backoff import Backoff, Pauses
from lockstep.kube.errors import (
    ApiError,
    Cause,
    Conflict,
    Forbidden,
    NotFound,
    ServerFailed,
    TooManyRequests,
    Unreachable,
)
from lockstep.kube.retry import MAX_ATTEMPTS, Attempt, wait_before_retry


@given(
    st.floats(0.01, 10.0),
    st.floats(10.0, 100.0),
    st.floats(0.0, 1.0),
    st.integers(1, 2000),
    st.integers(),
)
def test_a_wait_lies_between_its_floor_and_its_ceiling(
    initial: float, cap: float, jitter: float, failures: int, seed: int
) -> None:
    wait = Backoff(initial, cap, jitter).delay(failures, random.Random(seed))  # noqa: S311
    ceiling = min(cap, initial * 2.0 ** min(failures - 1, 60))
    assert (1 - jitter) * ceiling - 1e-9 <= wait <= ceiling


def test_waits_double_and_begin_anew_after_success() -> None:
    pauses = Pauses(Backoff(1.0, 5.0, jitter=0.0))
    assert [pauses.failed() for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
    pauses.worked()
    assert pauses.failed() == 1.0


RNG = random.Random(1)  # noqa: S311 - a test, to be repeated exactly
BUSY = ServerFailed(503, "", "busy")
THROTTLED = TooManyRequests(429, "TooManyRequests", "later", retry_after=2.0)
BUDGET = TooManyRequests(429, "TooManyRequests", "no", (Cause(reason="DisruptionBudget"),))
NOT_SENT = Unreachable("Connection", "refused", acted=False)
BROKEN = Unreachable("Connection", "reset")


@pytest.mark.parametrize(
    ("error", "repeatable", "again"),
    [
        (BUSY, True, True),
        (BUSY, False, False),
        (ServerFailed(500, "", ""), True, True),
        (ServerFailed(501, "", ""), True, False),
        (THROTTLED, True, True),
        (THROTTLED, False, True),
        (BUDGET, True, False),
        (NOT_SENT, False, True),
        (BROKEN, True, True),
        (BROKEN, False, False),
        (Unreachable("TLS", "wrong certificate", acted=False), True, False),
        (NotFound(404, "NotFound", ""), True, False),
        (Conflict(409, "Conflict", ""), True, False),
        (Forbidden(403, "Forbidden", ""), True, False),
    ],
)
def test_what_is_sent_again(error: ApiError, repeatable: bool, again: bool) -> None:
    wait = wait_before_retry(error, Attempt(1, 30.0, repeatable), RNG)
    assert (wait is not None) == again


def test_the_server_says_how_long_to_wait() -> None:
    wait = wait_before_retry(THROTTLED, Attempt(1, 30.0, True), RNG)
    assert wait is not None
    assert 2.0 <= wait < 3.1


@pytest.mark.parametrize(
    ("error", "attempt"),
    [(THROTTLED, Attempt(1, 1.9, True)), (BUSY, Attempt(MAX_ATTEMPTS, 1e9, True))],
    ids=["past the deadline", "too often"],
)
def test_it_gives_up(error: ApiError, attempt: Attempt) -> None:
    assert wait_before_retry(error, attempt, RNG) is None
