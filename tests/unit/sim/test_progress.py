"""How fast simulated jobs run, and what of their work is saved."""

import pytest
from tests.support.simulated_jobs import job, simulate

from lockstep.sim.engine import Options


def of_groups(name, *groups, **given):
    """Return a Gang of several groups: ``of_groups("a", ("big", "1x8"), ("small", "1..4x1"))``."""
    parts = [(group, job(name, size, **given)) for group, size in groups]
    for group, part in parts:
        part["spec"]["groups"][0]["name"] = group
    whole = parts[0][1]
    whole["spec"]["groups"] = [part["spec"]["groups"][0] for _, part in parts]
    return whole


@pytest.mark.parametrize(
    ("cluster", "groups", "end"),
    [
        pytest.param("1x8", [("worker", "1..2x8")], 200, id="half of the GPUs"),
        pytest.param("1x8", [("big", "1x4"), ("small", "0..4x1")], 100, id="all of them"),
        pytest.param(
            "1x8", [("big", "1x6"), ("small", "0..4x1")], 125, id="8 of 10 GPUs, 3 of 5 pods"
        ),
        pytest.param(
            "1x8", [("leader", "1x0"), ("worker", "1..2x8")], 200, id="a pod without GPUs is none"
        ),
        pytest.param(
            "1x8", [("worker", "0..1x16"), ("leader", "1x0")], None, id="no GPUs, no progress"
        ),
    ],
)
def test_an_elastic_job_runs_as_fast_as_it_has_gpus(cluster, groups, end):
    work = of_groups("a", *groups, runs=100)
    (life,) = simulate(cluster, work, options=Options(until=10_000)).lives
    assert life.started == 0
    assert life.ended == (end if end is None else pytest.approx(end))
