"""What the crash tests share: servers to crash against, and components that wait for less long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.apiserver import ApiServer
from tests.support.crashing import Arena

from lockstep.scheduler.core.cycle.timers import Wait

SOME, FEW = 5, 2
"""Points of a scenario in a usual run; a real server, where each costs more, sees fewer."""

SOAK = [pytest.mark.soak, pytest.mark.timeout(1800)]
ARENAS = [
    pytest.param(("server", SOME), id="embedded"),
    pytest.param(("real_server", FEW), id="kube-apiserver"),
    pytest.param(("server", None), id="embedded-everywhere", marks=SOAK),
    pytest.param(("real_server", None), id="kube-apiserver-everywhere", marks=SOAK),
]

HURRIED = {
    "lockstep.scheduler.status_writer.PACE": 0.01,
    "lockstep.scheduler.queue_status_writer.PACE": 0.02,
    "lockstep.scheduler.loop.RETRY_SECONDS": 0.02,
    "lockstep.scheduler.binder.BACKOFF": None,
    "lockstep.scheduler.evictor.RETRY_SECONDS": 0.02,
    "lockstep.scheduler.core.cycle.timers.ROLLBACK": Wait("half-placed gangs, hurried", 0.3),
    "lockstep.scheduler.core.cycle.decider.ROLLBACK": Wait("half-placed gangs, hurried", 0.3),
    "lockstep.kube.retry.BACKOFF": None,
}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses short: a scenario is played hundreds of times, and none is about a pause."""
    from lockstep.api.backoff import Backoff

    quick = Backoff(initial=0.02, cap=0.2, jitter=0.5)
    for name, value in HURRIED.items():
        monkeypatch.setattr(name, quick if value is None else value)


@pytest.fixture(params=ARENAS)
def arena(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Arena:
    """Each server in turn, and how many points of a scenario are tried there."""
    name, most = request.param
    return Arena(_server(request, name), most, record_property)


@pytest.fixture(params=ARENAS)
def furnished_arena(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Arena:
    """The same, where the real server has the controllers that collect garbage beside it."""
    name, most = request.param
    name = name.replace("real_server", "real_cluster")
    return Arena(_server(request, name), most, record_property)


def _server(request: pytest.FixtureRequest, name: str) -> ApiServer:
    server: ApiServer = request.getfixturevalue(name)
    if name == "real_server":
        request.getfixturevalue(name).empty()
    return server
