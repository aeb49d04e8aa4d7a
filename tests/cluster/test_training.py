"""A gang trains on three nodes over the pods' network, and outlives a rank and a node."""

from __future__ import annotations

import re
import time

from tests.support.cluster_training import JOB, newest, ranks, starts, steps
from tests.support.on_cluster import OnCluster

WELL_BEFORE_EVICTION = 150
"""Seconds; Kubernetes alone evicts the pods of a lost node after 300."""


def test_three_ranks_stand_on_three_nodes(training: OnCluster) -> None:
    assert len(set(ranks(training).values())) == 3
    assert sorted(starts(training)) == [(0, 3, 0), (1, 3, 0), (2, 3, 0)]


def test_killed_rank_goes_on_at_its_step(training: OnCluster) -> None:
    before, pods = newest(training), ranks(training)
    rank = re.findall(r"^process (\d+)$", training.logs(f"{JOB}-worker-1"), re.MULTILINE)[-1]
    training.kubectl("exec", f"{JOB}-worker-1", "--", "sh", "-c", f"kill -9 {rank}")
    training.wait(lambda: len(starts(training)) >= 6, 60, "all ranks start again")
    resumed = {step for _, _, step in starts(training) if step}
    assert len(resumed) == 1
    assert resumed.pop() >= before
    assert ranks(training) == pods


def test_stopped_node_moves_the_gang(training: OnCluster) -> None:
    before = ranks(training)
    lost = before[f"{JOB}-worker-2"]
    reached = newest(training)
    stopped = time.time()
    training.cluster.stop_node(lost)
    training.wait(
        lambda: any(at > stopped + 1 and s > reached for at, s in steps(training).items()),
        WELL_BEFORE_EVICTION,
        "the gang steps after its node was stopped",
    )
    first = min(at for at in steps(training) if at > stopped + 1)
    print(f"node stopped to next step: {first - stopped:.1f} s")
    assert lost not in ranks(training).values()
    assert set(ranks(training)) == set(before)
