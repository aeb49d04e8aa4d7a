import pytest
from tests.support.drawn import queue
from tests.support.simulated_jobs import job

from lockstep.api.names import GPU
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import initial_cluster_of
from lockstep.sim.input.jobs import read_jobs
from lockstep.sim.whatif.forecast import forecast

WORLD = "2x8"


def asked(wanted, *others, now_only=False):
    world = initial_cluster_of(parse(WORLD))
    (work,) = read_jobs([wanted], world)
    return forecast(world, read_jobs(others, world), work, now_only=now_only)


@pytest.mark.parametrize(
    ("others", "starts", "after"),
    [
        pytest.param([], 0, (), id="room now"),
        pytest.param([job("a", "1x8", runs=50)], 50, ("a",), id="when the one in its way ends"),
        pytest.param(
            [job("a", "1x8", runs=50), job("b", "2x8", runs=10)],
            60,
            ("b",),
            id="behind what waits already",
        ),
        pytest.param([job("a", "1x8")], None, (), id="never, for the one in its way never ends"),
    ],
)
def test_a_job_starts_when_the_core_would_place_it(others, starts, after):
    found = asked(job("new", "2x8", runs=5), *others)
    assert (found.starts, found.after) == (starts, after)
    assert sum(found.nodes.values()) == (0 if starts is None else 2)


def test_what_runs_without_a_stated_end_is_counted():
    assert asked(job("new", "2x8"), job("a", "1x8")).endless == 1
    assert asked(job("new", "1x8"), job("a", "1x8", runs=5)).endless == 0


def test_without_the_future_it_starts_now_or_says_why_not():
    found = asked(job("new", "2x8"), job("a", "1x8", runs=50), now_only=True)
    assert found.starts is None
    assert "room for 1 of 2 now" in found.reason


def test_a_gang_behind_a_lapsing_reservation_is_played_to_start():
    world = initial_cluster_of(parse(WORLD))
    world.queues.append(queue("q", guaranteed={GPU: 4}))
    jobs = [
        job("a", "1x8", runs=99.5),
        job("first", "2x8", at=10),
        job("claims its share", "1x2", at=20, queue="q"),
        job("behind", "1x8", at=30),
    ]
    lives = Simulation(world, read_jobs(jobs, world), Options()).run().lives
    assert [life.started is not None for life in lives] == [True, False, True, True]


def test_it_comes_after_the_decision_about_those_before_it():
    world = initial_cluster_of(parse("4x8"))
    world.queues.append(queue("q", guaranteed={GPU: 8}))
    ahead = [job("a", "3x8", queue="q"), job("b", "1x1", queue="q")]
    (work,) = read_jobs([job("new", "1x8")], world)
    assert forecast(world, read_jobs(ahead, world), work).starts is None
