"""How small a change of policy is: the page on the scheduler's inside says where it goes.

Each example is the whole change, as it would stand in one package.
"""

from __future__ import annotations

import inspect

import pytest
from tests.support.drawn import add, draw, draw_gang, node, places

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.decisions import Verdict
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement import preconditions
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.scoring.strategies import Fullest
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray

LINES = 40
"""Lines that such a change takes at most."""


class FewestGpus(Fullest):
    """A rating: small nodes go first, so that large ones stay free for large pods."""

    def rate(self, shape: PodShape, rows: IntArray) -> FloatArray:
        """Return minus the GPUs that each node has in all."""
        found: FloatArray = -self._table.allocatable[GPU_COLUMN, rows].astype(float)
        return found


def nameless(workload: Workload) -> Verdict | None:
    """A reason: gangs called ``test`` wait until they are called something else."""
    if workload.key.name != "test":
        return None
    return Verdict("BadName", "the gang is called test", "another name")


@pytest.mark.parametrize(("own", "expected"), [(False, "large"), (True, "small")])
def test_a_new_rating_decides_where_pods_go(own: bool, expected: str) -> None:
    cluster = Cluster()
    for name, gpus, pods in (("large", 8, 8), ("small", 4, 2)):
        cluster.set_node(node(name, gpus=gpus, pods=pods))
    add(cluster, draw_gang("full: 1x7"))
    Decider(cluster).decide(0.0)
    if own:
        cluster.fits._fullest = FewestGpus(cluster.table)
    add(cluster, draw_gang("g: 1x1"))
    Decider(cluster).decide(1.0)
    assert places(cluster, "g-") == {"g-0": expected}


def test_a_new_reason_is_said_and_keeps_a_gang_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = preconditions._odd
    monkeypatch.setattr(preconditions, "_odd", lambda workload: nameless(workload) or odd(workload))
    cluster = draw(Cluster(), "s/l: a:8")
    for name in ("test", "other"):
        add(cluster, draw_gang(f"{name}: 1x1"))
    Decider(cluster).decide(0.0)
    assert set(places(cluster)) == {"other-0"}
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "test")])
    assert (verdict.reason, verdict.remedy) == ("BadName", "another name")


@pytest.mark.parametrize("change", [FewestGpus, nameless])
def test_a_change_of_policy_is_short(change: object) -> None:
    assert len(inspect.getsource(change).splitlines()) < LINES  # type: ignore[arg-type]
