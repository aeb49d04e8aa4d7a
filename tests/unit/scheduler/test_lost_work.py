"""What a gang loses with its place, by what it says of how and when it saves its work."""

from __future__ import annotations

import pytest
from tests.support.running import Running

from lockstep.api.timestamp import show
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.preemption.lost_work import checkpointed, last_saved, lost_work

SINCE, NOW = 1_000_000.0, 1_001_000.0


@pytest.mark.parametrize(
    ("promised", "annotated", "shown", "lost"),
    [
        pytest.param(None, None, None, 1000, id="all that it did"),
        pytest.param(None, 300, None, 300, id="what it did since the annotation says"),
        pytest.param(None, None, 200, 200, id="what it did since its status says"),
        pytest.param(None, 300, 200, 200, id="the later counts, the status"),
        pytest.param(None, 200, 300, 200, id="the later counts, the annotation"),
        pytest.param("10m", None, None, 600, id="at most what it promises"),
        pytest.param("1h", None, None, 1000, id="never more than it did"),
        pytest.param("10m", 900, None, 900, id="a promise not kept does not count"),
        pytest.param("10m", 5000, None, 1000, id="saved before it got this place"),
        pytest.param(None, -50, None, 0, id="saved by a clock that is ahead"),
    ],
)
def test_lost_work(
    promised: str | None, annotated: int | None, shown: int | None, lost: float
) -> None:
    world = Running.on("s/x: a:8")
    said = {} if promised is None else {"checkpoint": {"interval": promised}}
    when = {} if annotated is None else {"lockstep.dev/checkpoint": show(NOW - annotated)}
    name = world.submit("g: 1x8", annotations=when, **said)
    if shown is not None:
        world.show(name, last_checkpoint=show(NOW - shown))
    workload = world.cluster.workloads[WorkloadKey("Gang", "default", name)]
    assert lost_work(workload, SINCE, NOW) == lost
    assert checkpointed(workload) == any(one is not None for one in (promised, annotated, shown))


def test_a_single_pod_saves_no_work_the_scheduler_knows_of() -> None:
    world = Running.on("s/x: a:8")
    world.submit("g: 1x8")
    world.cluster.remove_gang("default", "g")
    workload = world.cluster.workloads[WorkloadKey("Gang", "default", "g")]
    assert (last_saved(workload), checkpointed(workload), lost_work(workload, SINCE, NOW)) == (
        None,
        False,
        1e3,
    )
