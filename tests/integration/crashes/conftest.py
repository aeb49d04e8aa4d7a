"""What the crash tests share: components that wait for less long."""

from __future__ import annotations

import pytest

HURRIED = {
    "lockstep.scheduler.status.PACE": 0.01,
    "lockstep.scheduler.queues.PACE": 0.02,
    "lockstep.scheduler.loop.RETRY_SECONDS": 0.02,
    "lockstep.scheduler.binder.FIRST_DELAY": 0.02,
    "lockstep.scheduler.core.decide.PATIENCE": 0.3,
    "lockstep.kube.retry.BACKOFF": None,
}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses short: a scenario is played hundreds of times, and none is about a pause."""
    from lockstep.kube.backoff import Backoff

    quick = Backoff(initial=0.02, cap=0.2, jitter=0.5)
    for name, value in HURRIED.items():
        monkeypatch.setattr(name, quick if value is None else value)
