from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.simulated_jobs import job, simulate, training_job

from lockstep.api.core import Pod, PodDisruptionBudget, PriorityClass
from lockstep.api.queue import Queue
from lockstep.api.selectors import parse_labels
from lockstep.nodes.simulated.spec import parse
from lockstep.scheduler.core.runtime.clock import NotConverged
from lockstep.sim.engine.options import Options
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import initial_cluster_of, view
from lockstep.sim.result.record import Result

NODE_FAULTS = Faults(node_mtbf=40.0, node_repair=1.0, restart_cost=60, checkpoint_interval=600)


def times(result: Result) -> dict[str, tuple[float | None, float | None]]:
    return {life.name: (life.started, life.ended) for life in result.lives}


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([job("a", "1x8", runs=60)], {"a": (0, 60)}, id="starts at once"),
        pytest.param(
            [job("a", "1x8", at=5.5, runs=60)], {"a": (5.5, 65.5)}, id="arrives when it says"
        ),
        pytest.param(
            [job("a", "2x8", runs=60), job("b", "1x8", at=1, runs=10)],
            {"a": (0, 60), "b": (60, 70)},
            id="waits for room",
        ),
        pytest.param(
            [job("a", "1x8", runs=60), job("b", "2x8", at=1, runs=10)],
            {"a": (0, 60), "b": (60, 70)},
            id="a gang starts whole",
        ),
        pytest.param(
            [job("a", "1x8", runs=100), job("b", "1..2x8", at=0, runs=100)],
            {"a": (0, 100), "b": (0, 150)},
            id="an elastic gang runs slower with half of its members, and grows",
        ),
        pytest.param([job("a", "1x8")], {"a": (0, None)}, id="no runtime means for ever"),
        pytest.param([job("a", "3x8", runs=1)], {"a": (None, None)}, id="never fits"),
        pytest.param(
            [training_job("a", "2x8", runs=60)], {"a": (0, 60)}, id="a TrainingJob is its pods"
        ),
    ],
)
def test_jobs_start_and_end_as_the_core_decides(jobs, expected):
    assert times(simulate("2x8", *jobs)) == expected


def test_what_never_starts_says_why():
    (life,) = simulate("2x8", job("a", "3x8", runs=1)).lives
    assert "the cluster has room for 2 of 3" in life.waiting


def test_a_gang_without_room_waits_while_others_run_for_ever():
    result = simulate("2x8", job("a", "1x8"), job("b", "2x8", runs=5))
    assert times(result) == {"a": (0, None), "b": (None, None)}


@pytest.mark.parametrize(("until", "end"), [(30, 30), (1000, 60)])
def test_it_stops_at_the_named_time_or_when_done(until, end):
    result = simulate("2x8", job("a", "1x8", runs=60), options=Options(until=until))
    assert result.end == end


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([job("a", "1x8", at=3, runs=60)], {"a": (10, 70)}, id="the start"),
        pytest.param([job("a", "1x8", at=10, runs=60)], {"a": (10, 70)}, id="not at a multiple"),
        pytest.param([job("a", "1x8", at=3, runs=63)], {"a": (10, 73)}, id="not the end"),
        pytest.param(
            [job("a", "2x8", runs=63), job("b", "2x8", at=3, runs=1)],
            {"a": (0, 63), "b": (70, 71)},
            id="the start of who waits for an end",
        ),
        pytest.param(
            [job("a", "2x8"), job("b", "1x8", at=3, runs=5, maxWait="24s")],
            {"a": (0, None), "b": (None, None)},
            id="the end of a wait",
        ),
    ],
)
def test_a_period_puts_decisions_off_to_its_multiples(jobs, expected):
    result = simulate("2x8", *jobs, options=Options(period=10, until=1000))
    assert times(result) == expected
    assert {life.name: life.gave_up for life in result.lives} == {
        name: 30 if expected[name][0] is None else None for name in expected
    }


def test_a_job_that_gave_up_keeps_its_reason_from_then():
    jobs = job("a", "2x8", runs=15), job("b", "1x8", runs=5, maxWait="13s")
    _, b = simulate("2x8", *jobs, options=Options(period=10)).lives
    assert b.gave_up == 20
    assert "1 pod (8 GPUs) short" in b.waiting


def test_jobs_that_break_between_decisions_restart_at_the_next():
    faults = Faults(gpu_mtbf=1, restart_cost=0, checkpoint_interval=0)
    work = job("a", "1x8", runs=10_000)
    result = simulate("1x8", work, options=Options(period=100, faults=faults))
    (life,) = result.lives
    assert life.restarts > 0
    assert all(stay.start % 100 == 0 for stay in result.stays)
    assert all(stay.end % 100 for stay in list(result.stays)[:-1])


def test_a_stay_names_pod_rank_node_and_devices():
    stays = simulate("2x8", job("a", "2x4", runs=60)).stays
    assert [(s.job, s.pod, s.rank, s.gpus, s.start, s.end) for s in stays] == [
        ("a", "a-worker-0", 0, (0, 1, 2, 3), 0, 60),
        ("a", "a-worker-1", 1, (4, 5, 6, 7), 0, 60),
    ]
    assert len({stay.node for stay in stays}) == 1


def test_a_job_whose_node_fails_continues_from_its_checkpoint():
    result = simulate("4x8", job("a", "4x8", runs=200_000), options=Options(faults=NODE_FAULTS))
    (life,) = result.lives
    assert life.restarts > 0
    assert life.ended is not None and life.ended > 200_000
    assert life.useful == pytest.approx(200_000 * 32)
    assert 0 < life.lost <= life.restarts * 600 * 32


def test_an_elastic_job_survives_node_loss_without_losing_work():
    result = simulate("4x8", job("a", "1..4x8", runs=200_000), options=Options(faults=NODE_FAULTS))
    (life,) = result.lives
    assert result.node_faults > 0
    assert life.lost == 0


def test_more_gpus_make_a_job_break_more_often():
    faults = Faults(gpu_mtbf=200.0, restart_cost=60, checkpoint_interval=600)
    small = simulate("16x8", job("a", "1x8", runs=200_000), options=Options(faults=faults))
    large = simulate("16x8", job("a", "16x8", runs=200_000), options=Options(faults=faults))
    assert large.lives[0].restarts > 4 * small.lives[0].restarts > 0


def test_a_job_that_has_ended_breaks_no_more():
    faults = Faults(gpu_mtbf=2.0, restart_cost=0, checkpoint_interval=600)
    short = [job(f"s{n}", "1x8", runs=5) for n in range(4)]
    result = simulate("5x8", *short, job("a", "1x8", runs=50_000), options=Options(faults=faults))
    assert [life.restarts for life in list(result.lives)[:4]] == [0] * 4
    assert result.lives[4].restarts > 0


def test_a_job_that_waited_too_long_leaves_its_room():
    jobs = [
        job("a", "2x8", runs=1000),
        job("b", "2x8", at=10, runs=50, maxWait="5m"),
        job("c", "2x8", at=20, runs=50),
    ]
    result = simulate("2x8", *jobs)
    assert times(result) == {"a": (0, 1000), "b": (None, None), "c": (1000, 1050)}
    assert result.lives[1].gave_up == 310


@pytest.mark.parametrize("runs", [1000, 310], ids=["long before", "at the moment it gives up"])
def test_a_job_that_gave_up_says_why_it_had_waited(runs):
    jobs = [job("a", "2x8", runs=runs), job("b", "2x8", at=10, maxWait="5m")]
    reason = simulate("2x8", *jobs).lives[1].waiting
    assert reason.startswith("not placed within 5m (maxWait); last: needs 2 pods x 8 GPUs;")
    assert "held by gang a (16 GPUs)" in reason


def test_who_waits_behind_what_never_ends_gives_up_too():
    result = simulate("1x8", job("a", "1x8"), job("b", "1x8", runs=5, maxWait="1h"))
    assert (result.lives[1].gave_up, result.end) == (3600, 3600)


def test_the_allowed_wait_restarts_when_the_place_is_lost():
    result = simulate(
        with_objects("1x8", HIGH),
        job("low", "1x8", runs=1000, maxWait="5m"),
        job("high", "1x8", at=600, runs=500, priorityClassName="high"),
    )
    low, _ = result.lives
    assert (low.started, low.gave_up, result.end) == (0, 900, 1100)


def test_only_spot_nodes_are_reclaimed():
    faults = Faults(spot=parse_labels("leaf=leaf-0-0"), spot_mtbf=0.5, spot_return=0.1)
    jobs = [job(name, "1x8", runs=50_000) for name in "abcd"]
    result = simulate("4x8,nodes-per-leaf=2", *jobs, options=Options(faults=faults))
    on_spot = {stay.job for stay in result.stays if stay.node.startswith("sim-0-0-")}
    assert len(on_spot) == 2
    assert {life.name for life in result.lives if life.restarts} == on_spot


JOBS = st.lists(
    st.builds(
        lambda n, pods, gpus, at, runs: (n, f"{pods}x{gpus}", at, runs),
        st.integers(0, 999),
        st.integers(1, 5),
        st.sampled_from([0, 1, 2, 4, 8]),
        st.integers(0, 300),
        st.integers(1, 5000),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda one: one[0],
)


@settings(max_examples=examples(60), deadline=None)
@given(JOBS, st.integers(0, 5))
def test_no_device_is_given_out_twice_and_gangs_start_whole(drawn, seed):
    jobs = [job(f"j{n}", size, at=at, runs=runs) for n, size, at, runs in drawn]
    options = Options(seed=seed, faults=Faults(node_mtbf=1.0, gpu_mtbf=5.0, node_repair=0.2))
    result = simulate("3x8", *jobs, options=options)
    held = defaultdict(list)
    for stay in result.stays:
        for gpu in stay.gpus:
            held[stay.node, gpu].append((stay.start, stay.end or result.end))
    for spans in held.values():
        spans.sort()
        assert all(ended <= began for (_, ended), (began, _) in pairwise(spans))
    sizes = {f"j{n}": int(size.split("x")[0]) for n, size, _, _ in drawn}
    starts = defaultdict(set)
    for stay in result.stays:
        starts[stay.job, stay.start].add(stay.pod)
    assert all(len(pods) == sizes[name] for (name, _), pods in starts.items())


@settings(max_examples=examples(20), deadline=None)
@given(JOBS, st.integers(0, 5))
def test_the_same_seed_gives_the_same_run(drawn, seed):
    jobs = [job(f"j{n}", size, at=at, runs=runs) for n, size, at, runs in drawn]
    options = Options(seed=seed, faults=Faults(node_mtbf=1.0, gpu_mtbf=5.0))
    first, second = (simulate("3x8", *jobs, options=options) for _ in range(2))
    assert list(first.stays) == list(second.stays)
    assert times(first) == times(second)


HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def with_objects(spec, *objects):
    """Return the world of a SPEC with further objects."""
    there = initial_cluster_of(parse(spec))
    there.priority_classes = [view(o, PriorityClass) for o in objects if o["kind"] != "Queue"]
    there.queues = [view(o, Queue) for o in objects if o["kind"] == "Queue"]
    return there


def queue(name, **spec):
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_the_less_important_job_yields_and_resumes_from_its_checkpoint():
    faults = Faults(checkpoint_interval=100, restart_cost=30)
    result = simulate(
        with_objects("2x8", HIGH),
        job("low", "2x8", runs=1000),
        job("high", "2x8", at=250, runs=500, priorityClassName="high"),
        options=Options(faults=faults),
    )
    low, high = result.lives
    assert (high.started, high.ended) == (250, 750)
    assert (low.preemptions, low.lost) == (1, 50 * 16)
    assert low.ended == 750 + 30 + 800
    assert result.evictions == [("high", "low")]


def test_an_elastic_job_gives_up_members_and_goes_on():
    result = simulate(
        with_objects("2x8", HIGH),
        job("low", "1..2x8", runs=1000),
        job("high", "1x8", at=100, runs=100, priorityClassName="high"),
    )
    low, high = result.lives
    assert (high.started, low.preemptions, low.lost) == (100, 1, 0)
    assert low.ended == 1050


def test_a_queues_limit_holds_its_jobs_back():
    result = simulate(
        with_objects("2x8", queue("small", limit={"nvidia.com/gpu": 8})),
        job("a", "1x8", runs=100, queue="small"),
        job("b", "1x8", runs=100, queue="small"),
        job("c", "1x8", runs=100),
    )
    assert times(result) == {"a": (0, 100), "b": (100, 200), "c": (0, 100)}


def test_endless_decisions_raise_an_error_naming_moment_and_jobs():
    with pytest.raises(NotConverged) as caught:
        simulate(
            with_objects("1x8", HIGH),
            job("low", "1x8", runs=10),
            job("high", "1x8", at=3, runs=10, priorityClassName="high"),
            options=Options(rounds=2),
        )
    assert (caught.value.moment, caught.value.jobs) == (3.0, ("high", "low"))
    assert str(caught.value) == (
        "after 2 rounds of decisions at 3 s there is still something to decide; "
        "the last round was about: high, low"
    )


def test_a_job_placed_at_the_start_continues_there():
    there = initial_cluster_of(parse("2x8"))
    node = sorted(there.nodes)[1]
    meta = {
        "name": "on-worker-0",
        "namespace": "default",
        "labels": {"lockstep.dev/gang": "on", "lockstep.dev/gang-group": "worker"},
        "annotations": {"lockstep.dev/gpus": "2,3"},
    }
    resources = {"limits": {"nvidia.com/gpu": 2}}
    spec = {"nodeName": node, "containers": [{"name": "main", "resources": resources}]}
    there.pods["default", "on-worker-0"] = view(
        {"kind": "Pod", "metadata": meta, "spec": {**spec, "schedulerName": "lockstep"}}, Pod
    )
    running = job("on", "1x2", runs=100)
    running["metadata"]["annotations"]["lockstep.dev/elapsed"] = "40"
    result = simulate(there, running)
    (stay,) = result.stays
    assert (stay.node, stay.gpus, stay.end) == (node, (2, 3), 60)


def budget(name, gang, allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"lockstep.dev/gang": gang}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.mark.parametrize(
    ("protected", "allowed", "victim"),
    [("a", 0, "b"), ("b", 0, "a"), ("b", 1, "b")],
    ids=["one", "the other", "as far as the budget goes"],
)
def test_a_job_protected_by_budget_stays_where_others_can_go(protected, allowed, victim):
    there = with_objects("2x8", HIGH)
    there.budgets = [view(budget("kept", protected, allowed), PodDisruptionBudget)]
    jobs = [job(name, "1x8", at=at, runs=1000) for at, name in enumerate("ab")]
    high = job("high", "1x8", at=100, runs=100, priorityClassName="high")
    assert simulate(there, *jobs, high).evictions == [("high", victim)]


@pytest.mark.parametrize("drawn", [job, training_job])
def test_the_time_that_a_job_has_waited_already_counts(drawn):
    late = drawn("b", "1x8", runs=5, maxWait="5m")
    late["metadata"]["annotations"]["lockstep.dev/waited"] = "200"
    result = simulate("1x8", job("a", "1x8", runs=1000), late)
    assert [life.gave_up for life in result.lives] == [None, 100]
