"""What jobs pay in communication for where they stand, beside the best place there is."""

import pytest
from tests.support.simulated_jobs import job, simulate

from lockstep.nodes.simulated.spec import parse
from lockstep.sim.input.initial_cluster import initial_cluster_of
from lockstep.sim.result import chart
from lockstep.sim.result.communication import compared
from lockstep.sim.result.figures import communication_cost

TWO_LEAVES = "8x8,nodes-per-leaf=4,leaves-per-spine=2"
SPLIT = {"tensor": 8}


def costs(*jobs):
    world = initial_cluster_of(parse(TWO_LEAVES))
    result = simulate(world, *jobs)
    result.communication = compared(world, result)
    return {one.job: one for one in result.communication}, result


def test_a_job_that_is_alone_stands_at_its_best():
    found, _ = costs(job("a", "4x8", runs=10, parallelism=SPLIT))
    assert found["a"].ratio == 1 and found["a"].seconds > 0


def test_a_job_torn_apart_by_others_pays_the_wider_tier():
    found, _ = costs(
        job("left", "3x8", runs=100),
        job("right", "3x8", runs=100),
        job("torn", "2x8", at=1, runs=10, parallelism=SPLIT),
        job("whole", "2x8", at=200, runs=10, parallelism=SPLIT),
    )
    assert found["whole"].ratio == 1
    assert found["torn"].ideal == found["whole"].seconds
    assert found["torn"].ratio > 1


def test_an_elastic_job_is_compared_at_its_starting_size():
    found, _ = costs(
        job("other", "4x8", runs=100),
        job("grows", "2..8x8", at=1, runs=10, parallelism=SPLIT),
        job("four", "4x8", at=300, runs=10, parallelism=SPLIT),
    )
    assert found["grows"].ideal == found["four"].seconds


def test_jobs_that_state_no_parallelism_are_not_compared():
    found, result = costs(job("a", "4x8", runs=10))
    assert not found and communication_cost(result.communication) == {"jobs": 0}


def test_the_figures_sum_up_and_the_chart_names_every_job():
    found, result = costs(
        job("left", "3x8", runs=100),
        job("right", "3x8", runs=100),
        job("torn", "2x8", at=1, runs=10, parallelism=SPLIT),
        job("whole", "2x8", at=200, runs=10, parallelism=SPLIT),
    )
    cost = communication_cost(result.communication)
    assert (cost["jobs"], cost["worst"]) == (2, round(found["torn"].ratio, 4))
    assert cost["ratio"] == pytest.approx((1 + found["torn"].ratio) / 2, abs=1e-4)
    assert all(f"<title>{name}: " in chart.svg(result) for name in found)
