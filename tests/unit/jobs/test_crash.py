"""A controller that ends between any two writes leaves nothing lost, doubled or counted twice.

Each story is played once without a crash, then once for every write in it: the controller ends
right before that write, and another one goes on with nothing but the state of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.support.job_world import Crash, FakeCluster
from tests.support.jobs import job, mpi_roles, role

from lockstep.api.training import TrainingJob

Step = Callable[[FakeCluster], None]


def fails(name: str) -> Step:
    return lambda world: world.fail(name) if name in world.pods else None


def vanishes(name: str) -> Step:
    return lambda world: world.pods.pop(name, None) and None


def goes(name: str) -> Step:
    """Let the node of the pod that is there now be told to go away."""

    def step(world: FakeCluster) -> None:
        world.going = {name: world.pods[name].metadata.uid}

    return step


def done(*names: str) -> Step:
    def step(world: FakeCluster) -> None:
        for name in names:
            world.set(name, "Succeeded")

    return step


def edit(**spec: object) -> Step:
    return lambda world: world.edit(**spec)


def later(seconds: float) -> Step:
    def step(world: FakeCluster) -> None:
        world.now += seconds

    return step


def reports(state: str, **more: object) -> Step:
    def step(world: FakeCluster) -> None:
        for name in world.pods:
            world.report(name, state, **more)

    return step


ELASTIC = role(replicas=3, min=2, max=4)
W = [f"digits-worker-{i}" for i in range(4)]

STORIES: dict[str, tuple[TrainingJob, list[Step]]] = {
    "a job runs to its end": (job(), [done(*W[:2])]),
    "a worker fails": (job(launcher="None"), [fails(W[1]), done(*W[:2])]),
    "a worker with a launcher fails": (job(), [fails(W[1]), done(*W[:2])]),
    "ranks gather, fail, gather again and leave": (
        job(),
        [
            reports("Ready"),
            reports("Running"),
            reports("Failed", ended={"rank": 0, "at": 1.0, "signal": 9}),
            reports("Ready", snapshots=[{"local": 0, "step": 7}]),
            reports("Running"),
            reports("Done"),
            done(*W[:2]),
        ],
    ),
    "workers fail again and again": (
        job(launcher="None", recovery={"maxRestarts": 2}),
        [fails(W[0]), later(400), fails(W[1]), later(400), fails(W[0])],
    ),
    "a worker vanishes": (job(), [vanishes(W[0]), done(*W[:2])]),
    "an elastic worker fails": (job(ELASTIC), [fails(W[2]), done(*W[:3])]),
    "elastic workers fail and vanish": (
        job(ELASTIC, recovery={"maxRestarts": 9}),
        [fails(W[2]), vanishes(W[1]), later(400), fails(W[1]), later(400), done(*W[:3])],
    ),
    "the first of elastic workers fails": (job(ELASTIC), [fails(W[0]), done(*W[:3])]),
    "an elastic job is scaled up and down": (
        job(ELASTIC),
        [edit(roles=[{**ELASTIC, "replicas": 4}]), edit(roles=[{**ELASTIC, "replicas": 2}])],
    ),
    "a spare takes a place, and is lost too": (
        job(role(replicas=2), recovery={"spares": 1}),
        [
            reports("Ready"),
            fails(W[1]),
            reports("Ready"),
            fails(W[2]),
            reports("Ready"),
            done(*W[:2]),
        ],
    ),
    "ranks leave a node that goes away": (
        job(recovery={"spares": 1}),
        [reports("Ready"), goes(W[0]), reports("Ready"), done(*W[1:3])],
    ),
    "a job is suspended and resumed": (job(), [edit(suspend=True), edit(suspend=False)]),
    "a fixed job is resized": (job(), [edit(roles=[role(replicas=3)]), done(*W[:3])]),
    "an mpi job runs to its end": (
        job(*mpi_roles(), framework="mpi", runPolicy={"cleanPods": "All"}),
        [fails(W[1]), done("digits-launcher-0")],
    ),
    "a job expires": (job(runPolicy={"timeToLive": "1h"}), [done(*W[:2]), later(3601)]),
}


@dataclass
class Play:
    """One telling of a story, with at most one crash."""

    world: FakeCluster
    crashed: bool = False

    def settle(self) -> None:
        try:
            self.world.settle()
        except Crash:
            self.crashed = True
            self.world.calls_left = None
            self.world.settle()

    def run(self) -> None:
        for move in (self.world.place, self.world.start):
            self.settle()
            self._at_most_one_attempt_runs()
            move()
        self.settle()

    def tell(self, steps: list[Step]) -> None:
        self.run()
        for step in steps:
            step(self.world)
            self.run()

    def _at_most_one_attempt_runs(self) -> None:
        attempts = {p.metadata.labels["lockstep.dev/attempt"] for p in self.world.pods.values()}
        assert len(attempts) <= 1


def outcome(world: FakeCluster) -> object:
    status = None
    if world.job is not None:
        told = world.job.status
        status = (told.phase, told.attempt, told.restarts, told.replacing, told.message)
    return status, sorted(world.pods), sorted(world.objects), sorted(world.made)


@pytest.mark.parametrize("story", STORIES)
def test_a_crash_before_any_write_changes_nothing(story: str) -> None:
    given, steps = STORIES[story]
    smooth = Play(FakeCluster(given))
    smooth.tell(steps)
    assert smooth.world.calls > 3
    for writes in range(smooth.world.calls):
        play = Play(FakeCluster(given, calls_left=writes))
        play.tell(steps)
        assert play.crashed
        assert outcome(play.world) == outcome(smooth.world), f"crash before write {writes + 1}"
