"""Smaller shapes of a job: each is tried on a simulation of its own."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.support.drawn import queue
from tests.support.examples import examples
from tests.support.simulated_jobs import job, training_job

from lockstep.api.names import CPU, GPU
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import InitialCluster, initial_cluster_of
from lockstep.sim.input.jobs import Job, read_jobs
from lockstep.sim.whatif.forecast import forecast
from lockstep.sim.whatif.smaller_shapes import Smaller, smaller

Json = dict[str, Any]


def with_cpus(obj: Json, cpus: int) -> Json:
    """Let each container of a job ask for CPUs too."""
    obj = copy.deepcopy(obj)
    for part in parts(obj):
        for container in part["template"]["spec"]["containers"]:
            resources = container["resources"]
            resources["requests"] = resources["requests"] | {CPU: str(cpus)}
    return obj


def with_roles(*gangs: Json) -> Json:
    """Return one gang of the groups of several."""
    groups = [gang["spec"]["groups"][0] | {"name": gang["metadata"]["name"]} for gang in gangs]
    return gangs[0] | {"spec": {"groups": groups}}


def parts(obj: Json) -> list[Json]:
    return obj["spec"].get("roles") or obj["spec"]["groups"]


def shown(shape: Smaller) -> str:
    """``worker 2 cpu 24000m gpu 4``: the roles that differ, their pods and what each asks for."""
    words = []
    for one in shape.roles:
        each = [f"{less.resource.rpartition('/')[2]}={less.amount}" for less in one.each]
        words.append(" ".join([one.role, str(one.pods), *sorted(each)]))
    return ", ".join(words)


PARALLEL = {"parallelism": {"tensor": 8}}
CASES = {
    "one pod": (job("new", "1x8"), [job("a", "2x5")], "2x8", ["worker 1 gpu=2"]),
    "one pod, by a divisor": (job("new", "1x6"), [job("a", "2x5")], "2x8", ["worker 1 gpu=3"]),
    "fewer pods, or less in each": (
        job("new", "3x8"), [job("a", "2x4")], "3x8", ["worker 2", "worker 3 gpu=4"],
    ),
    "among equals the fewest pods first": (
        job("new", "4x8"), [job("a", "3x4")], "4x8", ["worker 2", "worker 4 gpu=4"],
    ),
    "both at once": (
        job("new", "4x8"), [job("a", "2x6"), job("b", "1x8")], "3x8",
        ["worker 2 gpu=2", "worker 4 gpu=1"],
    ),
    "shares": (job("new", "2x50%"), [job("a", "1x60%"), job("b", "1x70%")], "1x2",
               ["worker 2 gpu-compute=25"]),
    "all else in proportion": (
        with_cpus(job("new", "1x8"), 80), [with_cpus(job("a", "1x4"), 64)], "1x8,cpus=128",
        ["worker 1 cpu=40000 gpu=4"],
    ),
    "all else as it was, where it may stay": (
        with_cpus(job("new", "1x8"), 60), [with_cpus(job("a", "1x4"), 64)], "1x8,cpus=128",
        ["worker 1 gpu=4"],
    ),
    "all roles in the same proportion": (
        with_roles(job("head", "1x8"), job("tail", "2x4")), [job("a", "3x5")], "3x8",
        ["head 1 gpu=2, tail 2 gpu=1"],
    ),
    "fewer of a small role": (
        with_roles(job("many", "4x1"), job("few", "2x6")), [job("a", "1x2")], "2x8",
        ["many 2", "few 2 gpu=4", "few 1"],
    ),
    "what its parallelism rules out": (
        training_job("new", "1x8", runs=1, **PARALLEL), [job("a", "1x4")], "1x8", [],
    ),
    "nothing": (job("new", "2x8"), [job("a", "2x8")], "2x8", []),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "others", "spec", "expected"), CASES.values(), ids=CASES)
def test_its_shapes(asked, others, spec, expected):
    world = initial_cluster_of(parse(spec))
    found = smaller(world, read_jobs(others, world), asked)
    assert [shown(shape) for shape in found.shapes] == expected
    assert found.tried


def test_processes_follow_the_gpus():
    world = initial_cluster_of(parse("1x8"))
    asked = training_job("new", "1x8", runs=1, parallelism={"tensor": 4, "data": 2})
    asked["spec"]["roles"][0]["processesPerNode"] = 8
    found = smaller(world, read_jobs([job("a", "1x4")], world), asked)
    assert [shown(shape) for shape in found.shapes] == []
    del asked["spec"]["parallelism"]["data"]
    found = smaller(world, read_jobs([job("a", "1x4")], world), asked)
    assert [shown(shape) for shape in found.shapes] == ["worker 1 gpu=4"]


def test_pods_that_are_one_object_are_cut_once():
    asked = job("new", "1x8")
    (part,) = parts(asked)
    twice = {"spec": {"groups": [part, part | {"name": "other"}]}}
    world = initial_cluster_of(parse("1x8"))
    found = smaller(world, read_jobs([job("a", "1x4")], world), asked | twice)
    assert [shown(shape) for shape in found.shapes] == ["worker 1 gpu=2, other 1 gpu=2"]


SIZES = st.builds("{}x{}".format, st.integers(1, 4), st.sampled_from([1, 2, 3, 4, 6, 8, "50%"]))
SPECS = st.sampled_from(["2x8", "4x4", "4x8,nodes-per-leaf=2"])
WISHES = st.sampled_from([{}, {"queue": "q"}, {"queue": "r"}, {"topology": {"required": "leaf"}}])
JOBS = st.lists(st.tuples(SIZES, WISHES, st.sampled_from([None, 50.0])), max_size=6)


def drawn(
    spec: str, given_jobs: list[tuple[str, Json, float | None]]
) -> tuple[InitialCluster, list]:
    world = initial_cluster_of(parse(spec))
    world.queues += [queue("q", guaranteed={GPU: 8}), queue("r", limit={GPU: 16})]
    objs = [
        job(f"a{i}", size, runs=runs, **wish) for i, (size, wish, runs) in enumerate(given_jobs)
    ]
    return world, read_jobs(objs, world)


def applied(obj: Json, shape: Smaller, more: int = 0) -> Json:
    """Return a job in a smaller shape, with some *more* pods."""
    obj = copy.deepcopy(obj)
    for part in parts(obj):
        for one in shape.roles:
            part["min"] = part["desired"] = one.pods + more
            amounts = {less.resource: less.amount for less in one.each}
            for container in part["template"]["spec"]["containers"]:
                for kind, asked in container["resources"].items():
                    container["resources"][kind] = asked | amounts
    return obj


def alone(world: InitialCluster, works: list[Job], obj: Json) -> bool:
    (work,) = read_jobs([obj], world)
    return forecast(world, works, work, now_only=True).starts == 0


KEPT = [("1x1", {}, None), ("1x2", {"queue": "q"}, 50.0), ("1x3", {"queue": "q"}, None)]
"""With 3x3 behind them: room is kept for it, into which a claim goes."""


@example("2x8", [*KEPT, ("3x3", {}, None)], "2x3", {"queue": "q"})
@settings(max_examples=examples(40), deadline=None)
@given(SPECS, JOBS, SIZES, WISHES)
def test_each_of_them_starts_and_none_with_a_pod_more(spec, others, size, wish):
    world, works = drawn(spec, others)
    asked = job("new", size, **wish)
    assume(not alone(world, works, asked))
    for shape in smaller(world, works, asked).shapes:
        assert alone(world, works, applied(asked, shape))
        (role,) = shape.roles
        if role.pods < role.instead:
            assert not alone(world, works, applied(asked, shape, 1))


@settings(max_examples=examples(40), deadline=None)
@given(SPECS, JOBS, st.lists(st.tuples(SIZES, WISHES), min_size=1, max_size=4))
def test_an_attempt_finds_what_a_simulation_of_its_own_does(spec, others, tries):
    world, works = drawn(spec, others)
    present = Simulation(world, works, Options(until=0.0))
    present.run()
    for size, wish in tries:
        obj = job("new", size, **wish)
        (work,) = read_jobs([obj], world)
        started, as_before = present.attempt(work)
        assert started == alone(world, works, obj)
        if not as_before:
            break
