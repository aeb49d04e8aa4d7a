"""``submit --what-if``: each of its four answers is held against the scheduler itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.drawn import queue
from tests.support.simulated_jobs import job, training_job

from lockstep.api import timestamp
from lockstep.api.core import NODES, PriorityClass
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GPUS_ANNOTATION, RUNTIME_ANNOTATION
from lockstep.cli.failure import BadInput
from lockstep.cli.snapshot import object_of
from lockstep.cli.whatif import Answer, answer_to, jobs_among
from lockstep.nodes.simulated.spec import parse
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.util.bitmask import format_indices
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import (
    EPOCH,
    InitialCluster,
    initial_cluster_of,
    read_initial_cluster,
)
from lockstep.sim.input.jobs import Job, read_jobs, read_standing

Json = dict[str, Any]
GPU = "nvidia.com/gpu"


@dataclass
class Case:
    asked: Json
    others: list[Json] = field(default_factory=list)
    spec: str = "2x8"
    queues: dict[str, Json] = field(default_factory=dict)
    starts: float | None = 0
    pods: int = 0
    """Pods that stand when it starts."""
    preempts: tuple[str, ...] = ()
    smaller: int | None = None
    """Pods with which it would start now, if each asks for as much as before."""

    def __post_init__(self) -> None:
        self.asked["metadata"]["namespace"] = "default"

    @property
    def world(self) -> InitialCluster:
        world = initial_cluster_of(parse(self.spec))
        world.queues += [queue(name, **spec) for name, spec in self.queues.items()]
        for name, value in (("low", -10), ("high", 10)):
            meta = ObjectMeta(name=name)
            world.priority_classes.append(PriorityClass(metadata=meta, value=value))
        return world


LEAVES = "4x8,nodes-per-leaf=2"
UNDER_LEAF = {"topology": {"required": "leaf"}}
CASES = {
    "room now": Case(job("new", "2x8"), pods=2),
    "later": Case(job("new", "2x8"), [job("a", "1x8", runs=50)], starts=50, pods=2, smaller=1),
    "behind what waits, which less of it would not delay": Case(
        job("new", "2x8", runs=5), [job("a", "1x8", runs=50), job("b", "2x8", runs=10)],
        starts=60, pods=2, smaller=1,
    ),
    "behind what waits, which less of it would delay": Case(
        job("new", "2x8"), [job("a", "1x8", runs=50), job("b", "2x8", runs=10)],
        starts=60, pods=2,
    ),
    "never as far as is known": Case(
        job("new", "2x8"), [job("a", "1x8")], starts=None, smaller=1
    ),
    "too large for ever": Case(job("new", "3x8"), starts=None, smaller=2),
    "elastic: with fewer than it wants": Case(
        job("new", "1..4x8"), [job("a", "1x8")], pods=1
    ),
    "elastic: fewer than it needs": Case(
        job("new", "2..4x8"), [job("a", "1x8")], starts=None, smaller=1
    ),
    "bound to a leaf": Case(
        job("new", "2x8", **UNDER_LEAF), [job("a", "1x8", **UNDER_LEAF), job("b", "2x8")],
        LEAVES, starts=None, smaller=1,
    ),
    "bound by its queue": Case(
        job("new", "2x8", queue="q"), queues={"q": {"limit": {GPU: 8}}}, starts=None, smaller=1
    ),
    "bound by its queue for a while": Case(
        job("new", "2x8", queue="q"), [job("a", "1x8", queue="q", runs=40)], "4x8",
        {"q": {"limit": {GPU: 16}}}, starts=40, pods=2, smaller=1,
    ),
    "more important": Case(
        job("new", "1x8", priorityClassName="high"), [job("a", "2x8", priorityClassName="low")],
        pods=1, preempts=("a",),
    ),
    "within its share": Case(
        job("new", "1x8", queue="q"), [job("a", "1x8", queue="r"), job("b", "1x8", queue="r")],
        queues={"q": {"guaranteed": {GPU: 8}}, "r": {}}, pods=1, preempts=("a",),
    ),
    "only part of it within its share": Case(
        job("new", "2x8", queue="q"), [job("a", "1x8", queue="r"), job("b", "1x8", queue="r")],
        queues={"q": {"guaranteed": {GPU: 8}}, "r": {}}, starts=None, smaller=1,
    ),
    "it cannot be of every size": Case(
        training_job("new", "9x8", runs=5, parallelism={"tensor": 8, "pipeline": 3}),
        [job("a", "1x8")], "8x8", starts=None, smaller=6,
    ),
}  # fmt: skip


def settle(decider: Decider) -> None:
    """Decide until nothing changes; victims are gone at once and do not come back."""
    while found := decider.decide(EPOCH):
        for placement in found.placements:
            for one in placement.assignments:
                one.member.assumed = False  # the binding is done
        for eviction in found.evictions:
            for member in eviction.victims:
                decider.cluster.remove_pod(*member.key)
        if not (found.placements or found.evictions or found.more):
            return


def arrive(decider: Decider, obj: Json, world: InitialCluster) -> Job:
    (work,) = read_jobs([obj], world)
    decider.cluster.set_gang(work.gang)
    for one in work.pods:
        decider.cluster.set_pod(one)
    settle(decider)
    return work


def with_others(case: Case) -> tuple[InitialCluster, Decider]:
    """The world in which those of the others that fit stand already, and its decider."""
    world = case.world
    decider = Decider(world.cluster())
    for obj in case.others:
        for one in arrive(decider, obj, world).pods:
            member = decider.cluster.pods[one.metadata.namespace, one.metadata.name]
            if member.node:
                held = {GPUS_ANNOTATION: format_indices(member.gpus)}
                meta = replace(one.metadata, annotations=one.metadata.annotations | held)
                spec = replace(one.spec, node_name=member.node)
                world.pods[member.key] = replace(one, metadata=meta, spec=spec)
    return world, decider


def ask(case: Case) -> Answer:
    world, _ = with_others(case)
    return answer_to(world, read_jobs(case.others, world), case.asked)


def fewer_pods(answer: Answer) -> int | None:
    """With how many pods that ask for as much each it would start now."""
    roles = (role for shape in answer.smaller.shapes for role in shape.roles)
    return next((role.pods for role in roles if not role.each), None)


def stands(case: Case, asked: Json) -> int:
    """How many pods of *asked* the decider places now, if it comes behind the others."""
    world, decider = with_others(case)
    arrive(decider, asked, world)
    pods = decider.cluster.pods.values()
    return sum(bool(m.node) for m in pods if m.name.startswith("new-"))


def shrunk(obj: Json, size: int) -> Json:
    of = "groups" if obj["kind"] == "Gang" else "roles"
    (part,) = obj["spec"][of]
    field = "min" if obj["kind"] == "Gang" else "replicas"
    less = {**part, field: size} | ({"desired": size} if "desired" in part else {})
    return {**obj, "spec": {**obj["spec"], of: [less]}}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_its_answers(case):
    found = ask(case)
    assert found.forecast.starts == case.starts
    assert sum(found.forecast.nodes.values()) == case.pods
    assert found.forecast.preempts == case.preempts
    assert fewer_pods(found) == case.smaller


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_it_says_of_now_is_what_the_decider_does(case):
    assert stands(case, case.asked) == (case.pods if case.starts == 0 else 0)


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=name) for name, c in CASES.items() if c.smaller]
)
def test_the_smaller_shape_starts_now_and_none_in_between_does(case):
    size = case.asked["spec"].get("groups", case.asked["spec"].get("roles"))[0]
    most = size.get("replicas") or size["min"]
    assert stands(case, shrunk(case.asked, case.smaller)) == case.smaller
    step = 3 if "parallelism" in case.asked["spec"] else 1
    for between in range(case.smaller + step, most, step):
        assert stands(case, shrunk(case.asked, between)) == 0


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=name) for name, c in CASES.items() if c.preempts]
)
def test_whom_it_preempts_loses_its_place(case):
    world, _ = with_others(case)
    works = read_jobs([*case.others, case.asked], world)
    lives = Simulation(world, works, Options(until=0.0)).run().lives
    hit = tuple(sorted(life.name for life in lives if life.preemptions))
    assert hit == case.preempts


def waiting_since(since: str, obj: Json) -> Json:
    """Return a job as a snapshot holds it: with the time at which it was made, not to come."""
    runs = {RUNTIME_ANNOTATION: obj["metadata"]["annotations"][RUNTIME_ANNOTATION]}
    return obj | {"metadata": obj["metadata"] | {"annotations": runs, "creationTimestamp": since}}


def test_it_comes_behind_the_jobs_of_the_snapshot():
    taken = timestamp.parse("2030-01-01T12:00:00.5Z")
    nodes = initial_cluster_of(parse("2x8")).nodes.values()
    world = read_initial_cluster([object_of(NODES, node, taken) for node in nodes])
    others = [
        waiting_since("2030-01-01T11:00:00Z", job("a", "1x8", runs=50)),
        waiting_since("2030-01-01T12:00:00Z", job("b", "2x8", runs=10)),
    ]
    asked = Case(job("new", "2x8")).asked
    found = answer_to(world, read_jobs(others, world), asked).forecast
    assert found.starts == 60
    assert "room is kept for gang b until 2030-01-01T12:00:51Z" in found.reason


def test_each_job_of_a_snapshot_is_asked_once_and_anew():
    over = training_job("over", "1x8", runs=50) | {"status": {"phase": "Succeeded"}}
    own = job("over", "1x8", runs=50)
    own["metadata"]["ownerReferences"] = [{"kind": "TrainingJob", "name": "over"}]
    asked = jobs_among([over, own, {"kind": "Node", "metadata": {"name": "n"}}], "lab")
    assert [(obj["kind"], obj["metadata"]["namespace"]) for obj in asked] == [
        ("TrainingJob", "lab")
    ]
    assert [
        answer_to(initial_cluster_of(parse("1x8")), [], obj).forecast.starts for obj in asked
    ] == [0]


def test_a_file_without_a_job_is_refused():
    with pytest.raises(BadInput, match="takes TrainingJob and Gang objects"):
        jobs_among([{"kind": "Node", "metadata": {"name": "n"}}], "lab")


@pytest.mark.parametrize(
    "spec",
    [{"priorityClassName": "none-such"}, {"queue": "none-such"}, {"framework": "none-such"}],
    ids=["priority class", "queue", "framework"],
)
def test_another_jobs_fault_keeps_no_answer_back(spec: Json) -> None:
    world = Case(job("new", "1x8"), spec="3x8").world
    broken = training_job("broken", "1x8", runs=50)
    broken["spec"] |= spec
    broken["metadata"]["namespace"] = "default"
    standing = read_standing([broken, _in_default(job("sound", "1x8", runs=50))], world)
    assert "sound" in [one.name for one in standing]
    answer = answer_to(world, standing, _in_default(job("new", "1x8")))
    assert answer.forecast.starts == 0


def _in_default(obj: Json) -> Json:
    obj["metadata"]["namespace"] = "default"
    return obj
