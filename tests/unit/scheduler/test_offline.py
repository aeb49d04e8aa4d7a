"""Asking the core about lists of objects."""

import pytest
from tests.support.drawn import draw_gang, gang, node, pod

from lockstep.scheduler.core.runtime.offline import cluster_of, inquire

NODES = [node(f"n{i}", labels={"spine": "s", "leaf": "l"}) for i in range(2)]


def test_answers():
    fits, late = draw_gang("fits: 2x8 leaf"), draw_gang("late: 3x8", created="2027-01-01T00:00:00Z")
    placed = pod("there", on="n0")
    cluster = cluster_of(
        nodes=NODES, gangs=[fits.gang, late.gang], pods=[*fits.pods, *late.pods, placed]
    )
    answer = inquire(cluster, "default", "fits")
    assert (answer.verdict, answer.position) == (None, 1)
    assert answer.placement is not None
    assert {a.spot.node for a in answer.placement.assignments} == {"n0", "n1"}
    answer = inquire(cluster, "default", "late")
    assert (answer.position, answer.placement) == (2, None)
    assert answer.verdict is not None
    assert "room for 2 of 3 now" in answer.verdict.message


def test_a_single_pod_and_a_missing_one():
    cluster = cluster_of(nodes=NODES, pods=[pod("p", gpus=16)], gangs=[gang("g", minMember=1)])
    verdict = inquire(cluster, "default", "p").verdict
    assert verdict is not None
    assert verdict.reason == "TooLargeForNodes"
    with pytest.raises(KeyError):
        inquire(cluster, "default", "nobody")
