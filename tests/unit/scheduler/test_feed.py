"""What the scheduler's informers are asked for."""

from __future__ import annotations

import pytest

from lockstep.api.core import NODES, PODS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.runtime.manager import Manager
from lockstep.scheduler.event_handlers import EventHandlers


@pytest.fixture
def feed() -> EventHandlers:
    return EventHandlers(
        Manager(Client(ClusterConfig(server="http://h")), name="x", leader_elect=False)
    )


async def test_pods_alone_are_read_afresh(feed: EventHandlers) -> None:
    assert feed.informer(PODS).fresh
    assert not feed.informer(NODES).fresh


@pytest.mark.parametrize(
    ("known_at", "moment", "known"), [(None, 0.0, False), (5.0, 5.0, True), (5.0, 5.1, False)]
)
async def test_pods_are_known_where_reading_them_began_late_enough(
    feed: EventHandlers, known_at: float | None, moment: float, known: bool
) -> None:
    feed.informer(PODS).known_at = known_at
    assert feed.pods_known_since(moment) is known
