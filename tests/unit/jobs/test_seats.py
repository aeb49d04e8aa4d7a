"""A spare takes a lost pod's place; without one the others go on, and take it in again later."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.support.job_world import FakeCluster
from tests.support.jobs import job, role

from lockstep.api.core import Node
from lockstep.api.names import RANK_ANNOTATION
from lockstep.api.training import TrainingJobStatus
from lockstep.api.wire import convert
from lockstep.jobs.leaving_nodes import notice_of
from lockstep.jobs.seating import SMALLER_AFTER
from lockstep.jobs.validate import problems

POD = "digits-worker-{}".format


def status(world: FakeCluster) -> TrainingJobStatus:
    assert world.job is not None
    return world.job.status


def running(spares: int = 0, **size: int) -> FakeCluster:
    """Return a job whose ranks run in generation 1; its spares stand by."""
    world = FakeCluster(job(role(**size), recovery={"spares": spares}))
    world.run()
    world.everybody("Ready")
    for name in list(world.pods)[: size["replicas"]]:
        world.report(name, "Running")
    world.settle()
    assert (world.world().phase, world.world().generation) == ("Run", 1)
    return world


def test_a_job_has_its_spares_beside_it() -> None:
    world = running(spares=1, replicas=2)
    assert sorted(world.pods) == [POD(0), POD(1), POD(2)]
    (group,) = world.objects["Gang", "digits"].spec.groups
    assert (group.min, group.desired, group.spares) == (2, 3, 1)
    assert [part.pods for part in world.world().parts] == [2]
    assert world.world().ranks == {POD(0): 0, POD(1): 1}
    assert status(world).replica_statuses["worker"].active == 2


@pytest.mark.parametrize("lost", [0, 1])
def test_a_spare_takes_the_lost_place_and_nobody_else_moves(lost: int) -> None:
    world = running(spares=1, replicas=2)
    world.fail(POD(lost))
    world.run()
    seats = {POD(1 - lost): 1 - lost, POD(2): lost}
    assert (world.world().generation, world.world().ranks) == (2, seats)
    assert world.world().master.startswith(POD(2) if lost == 0 else POD(0))
    assert "a spare takes its place" in status(world).message
    # What was lost comes again, as the spare, which the scheduler gives up first.
    ranks = {name: pod.metadata.annotations[RANK_ANNOTATION] for name, pod in world.pods.items()}
    assert ranks == {POD(1 - lost): str(1 - lost), POD(2): str(lost), POD(lost): "2"}
    assert world.pods[POD(lost)].status.phase == "Running"
    world.everybody("Ready")
    assert world.world().phase == "Run"
    world.fail(POD(2))
    world.run()
    assert (world.world().generation, set(world.world().ranks)) == (3, {POD(0), POD(1)})


def test_a_spare_that_ends_is_replaced_and_changes_nothing_else() -> None:
    world = running(spares=1, replicas=2)
    before = world.pods[POD(2)].metadata.uid
    world.fail(POD(2))
    world.run()
    assert world.pods[POD(2)].metadata.uid != before
    assert (status(world).restarts, world.world().generation) == (0, 1)


def test_a_job_succeeds_without_its_spares() -> None:
    world = running(spares=1, replicas=2)
    for name in (POD(0), POD(1)):
        world.set(name, "Succeeded")
    world.settle()
    assert status(world).phase == "Succeeded"


def lose(world: FakeCluster, name: str) -> None:
    """Let a pod fail, and its replacement find no place."""
    world.fail(name)
    world.settle()
    for one in world.pods:
        if one != name:
            world.report(one, "Ready")
    world.settle()


def test_the_others_continue_without_a_pod_that_finds_no_place() -> None:
    world = running(replicas=3, min=2, max=3)
    lose(world, POD(1))
    assert (world.world().phase, status(world).generation) == ("Gather", 2)
    world.now += SMALLER_AFTER + 1
    world.settle()
    for name in (POD(0), POD(2)):
        world.report(name, "Ready")
    world.settle()
    there = world.world()
    assert (there.phase, there.ranks, there.parts[0].pods) == ("Run", {POD(0): 0, POD(2): 1}, 2)
    world.run()
    world.report(POD(1), "Ready")
    world.settle()
    assert world.world().ranks == {}
    assert (world.world().parts[0].pods, world.world().phase) == (3, "Gather")


@pytest.mark.parametrize("size", [{"replicas": 3}, {"replicas": 3, "min": 3, "max": 4}])
def test_a_job_that_needs_all_waits_for_all(size: dict[str, int]) -> None:
    world = running(**size)
    lose(world, POD(1))
    world.now += SMALLER_AFTER + 1
    world.settle()
    assert (world.world().phase, status(world).seats) == ("Gather", None)


def test_another_size_numbers_anew() -> None:
    world = running(spares=1, replicas=2, min=1, max=4)
    world.fail(POD(0))
    world.run()
    assert status(world).seats is not None
    world.edit(roles=[role(replicas=3, min=1, max=4)])
    world.run()
    assert world.world().ranks == {POD(0): 0, POD(1): 1, POD(2): 2}
    assert POD(3) in world.pods


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"framework": "plain"}, "must be 0 for the framework plain"),
        ({"launcher": "None"}, "must be 0 without launchers"),
        ({"roles": [role("a"), role("b")]}, "must be 0 for a job of several roles"),
    ],
)
def test_spares_that_could_not_stand_in_are_named(spec: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"recovery": {"spares": 1}, **spec}
    roles = given.pop("roles", [])
    (found,) = problems(job(*roles, **given))
    assert (found.field, found.given) == ("spec.recovery.spares", 1)
    assert said in found.allowed


def on_nodes(world: FakeCluster) -> None:
    """Put each pod on a node of its own."""
    for number, (name, pod) in enumerate(world.pods.items()):
        spec = structs.replace(pod.spec, node_name=f"node-{number}")
        world.pods[name] = structs.replace(pod, spec=spec)


def test_ranks_leave_a_node_that_is_told_to_go() -> None:
    world = running(replicas=2)
    before = {name: pod.metadata.uid for name, pod in world.pods.items()}
    world.going[POD(1)] = before[POD(1)]
    world.reconcile()
    assert "which goes away: lockstep.dev/leaving" in status(world).message
    world.run()
    after = {name: pod.metadata.uid for name, pod in world.pods.items()}
    assert {name for name in before if before[name] != after[name]} == {POD(1)}
    assert (status(world).restarts, world.world().generation) == (0, 2)


@pytest.mark.parametrize("spares", [0, 1])
def test_a_notice_of_the_machine_moves_ranks_only_to_spares(spares: int) -> None:
    world = running(spares=spares, replicas=2)
    on_nodes(world)
    world.report(POD(1), "Running", notice="terminate at 12:00")
    world.settle()
    wanted = {POD(0): 0, POD(2): 1} if spares else {}
    assert world.world().ranks == wanted
    assert (status(world).restarts, status(world).generation) == (0, 1 + spares)


def test_a_job_without_launchers_is_left_where_it_is() -> None:
    world = FakeCluster(job(launcher="None"))
    world.run()
    world.going[POD(1)] = world.pods[POD(1)].metadata.uid
    world.settle()
    assert (status(world).attempt, status(world).phase) == (0, "Running")


@pytest.mark.parametrize(
    ("key", "known"), [("karpenter.sh/disrupted", True), ("nvidia.com/gpu", False)]
)
def test_taints_that_give_notice(key: str, known: bool) -> None:
    node = convert(
        {"metadata": {"name": "n"}, "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}},
        Node,
    )
    assert notice_of(node) == (key if known else "")


def test_a_job_starts_smaller_where_the_rest_finds_no_place() -> None:
    world = FakeCluster(job(role(replicas=3, min=2)))
    world.settle()
    for name in (POD(0), POD(1)):
        spec = structs.replace(world.pods[name].spec, node_name="node-1")
        world.pods[name] = structs.replace(world.pods[name], spec=spec)
    world.start()
    world.settle()
    for name in (POD(0), POD(1)):
        world.report(name, "Ready")
    world.settle()
    assert (world.world().phase, status(world).generation) == ("Gather", 1)
    world.now += SMALLER_AFTER + 1
    world.settle()
    for name in (POD(0), POD(1)):
        world.report(name, "Ready")
    world.settle()
    assert (world.world().phase, set(world.world().ranks)) == ("Run", {POD(0), POD(1)})
