"""Late gangs, starving queues and old saves, as Prometheus is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api import timestamp
from lockstep.api.gang import Gang
from lockstep.api.queue import Queue
from lockstep.api.wire import convert
from lockstep.insight.waiting import WaitingMetrics

START = timestamp.parse("2027-01-01T00:00:00Z")
HOUR = 3600.0


def at(hours: float) -> str:
    return timestamp.show(START + hours * HOUR)


def gang(name: str = "g", queue: str = "q", **more: Any) -> Gang:
    spec = {"queue": queue, **more.pop("spec", {})}
    meta = {"name": name, "namespace": "s", "uid": name, "creationTimestamp": at(0)}
    return convert({"metadata": meta, "spec": spec, "status": more}, Gang)


def queue(used: int, guaranteed: int = 8) -> Queue:
    gpus = "nvidia.com/gpu"
    spec, status = {"guaranteed": {gpus: guaranteed}}, {"used": {gpus: str(used)}}
    return convert({"metadata": {"name": "q"}, "spec": spec, "status": status}, Queue)


def told(metrics: WaitingMetrics) -> dict[str, float]:
    return {
        family.name.split("_")[2]: sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


def test_a_gang_is_late_by_the_first_estimate() -> None:
    gangs, clock = [gang(estimatedStart=at(1))], [START]
    metrics = WaitingMetrics(gangs, [], lambda: clock[0])
    assert told(metrics) == {"overdue": 0.0}
    gangs[0] = gang(estimatedStart=at(9))
    clock[0] = START + 3 * HOUR
    assert told(metrics) == {"overdue": 2 * HOUR}
    gangs[0] = gang(placedAt=at(3))
    assert told(metrics) == {}


@pytest.mark.parametrize(
    ("one", "used", "starves"),
    [
        (gang(), 4, True),
        (gang(), 8, False),
        (gang(placedAt=at(0)), 4, False),
        (gang(queue="other"), 4, False),
    ],
)
def test_a_queue_starves_below_its_share_while_a_gang_waits(
    one: Gang, used: int, starves: bool
) -> None:
    found = told(WaitingMetrics([one], [queue(used)], lambda: START + HOUR))
    assert found.get("starving") == (HOUR if starves else None)


@pytest.mark.parametrize(
    ("one", "ratio"),
    [
        (gang(placedAt=at(0), lastCheckpoint=at(1), spec={"checkpoint": {"interval": "30m"}}), 2.0),
        (gang(placedAt=at(1), lastCheckpoint=at(0), spec={"checkpoint": {"interval": "1h"}}), 1.0),
        (gang(placedAt=at(1), spec={"checkpoint": {}}), 6.0),
        (gang(placedAt=at(0)), None),
        (gang(spec={"checkpoint": {}}), None),
    ],
)
def test_the_age_of_a_save_is_told_in_intervals(one: Gang, ratio: float | None) -> None:
    assert told(WaitingMetrics([one], [], lambda: START + 2 * HOUR)).get("checkpoint") == ratio
