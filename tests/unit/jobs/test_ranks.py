"""The world of ranks: when they run, what they go on from, what a rank's end leads to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support.job_world import FakeCluster
from tests.support.jobs import job, role

from lockstep.api.copies import in_words
from lockstep.api.names import REPORT_ANNOTATION
from lockstep.api.training import TrainingJobStatus
from lockstep.jobs import conditions

KILLED = {"rank": 1, "at": 5.0, "signal": 9}
WRONG = {"rank": 1, "at": 5.0, "code": 1, "line": "ValueError: no"}


def status(world: FakeCluster) -> TrainingJobStatus:
    assert world.job is not None
    return world.job.status


def running(*roles: dict[str, Any], **spec: Any) -> FakeCluster:
    """Return a job whose ranks run in generation 1."""
    world = FakeCluster(job(*roles, **spec))
    world.run()
    world.everybody("Ready")
    world.everybody("Running")
    assert (world.world().generation, world.world().phase) == (1, "Run")
    assert status(world).phase == "Running"
    return world


def fail(world: FakeCluster, ended: dict[str, Any], **more: Any) -> None:
    world.report("digits-worker-1", "Failed", ended=ended, **more)
    world.settle()


def held(*steps: int) -> list[dict[str, int]]:
    return [{"local": 0, "step": step} for step in steps]


def test_ranks_run_once_every_launcher_has_gathered() -> None:
    world = FakeCluster(job())
    world.run()
    world.report("digits-worker-0", "Ready")
    world.settle()
    assert (world.world().phase, status(world).phase) == ("Gather", "Starting")
    world.report("digits-worker-1", "Ready")
    world.settle()
    assert (world.world().phase, status(world).phase) == ("Run", "Running")


def test_the_world_tells_who_belongs_to_it() -> None:
    world = running(role("chief", 1), role("worker", 2, processesPerNode=4)).world()
    assert [(p.role, p.pods, p.processes) for p in world.parts] == [
        ("chief", 1, 1),
        ("worker", 2, 4),
    ]
    assert world.master == "digits-chief-0.digits"


def test_a_rank_that_ends_starts_anew_in_its_pod() -> None:
    world = running()
    pods = {name: pod.metadata.uid for name, pod in world.pods.items()}
    port = world.world().port
    fail(world, KILLED)
    assert (world.world().generation, world.world().phase) == (2, "Gather")
    assert status(world).phase == "Restarting"
    assert status(world).message == (
        "the ranks are about to start, after this: "
        "digits-worker-1: rank 1 ended by signal 9 (SIGKILL)"
    )
    world.everybody("Ready")
    assert world.world().phase == "Run"
    assert world.world().port != port
    assert {name: pod.metadata.uid for name, pod in world.pods.items()} == pods
    assert (status(world).phase, status(world).restarts) == ("Running", 1)


@pytest.mark.parametrize(
    ("first", "second", "resume"),
    [
        (held(7, 6), held(7, 6), 7),
        (held(8, 7), held(7, 6), 7),
        (held(7), held(9), None),
        ([], held(7), None),
    ],
)
def test_all_resume_from_the_newest_step_complete_on_every_rank(
    first: list[dict[str, int]], second: list[dict[str, int]], resume: int | None
) -> None:
    world = running()
    fail(world, KILLED)
    world.report("digits-worker-0", "Ready", snapshots=first)
    world.report("digits-worker-1", "Ready", snapshots=second)
    world.settle()
    assert world.world().resume == resume


@pytest.mark.parametrize(
    "spoil",
    [{"uid": "another"}, {"generation": 0}, {"generation": 2}],
    ids=["another pod's", "older", "newer"],
)
def test_a_report_of_another_pod_or_generation_does_not_count(
    spoil: dict[str, Any],
) -> None:
    world = running()
    fail(world, KILLED, **spoil)
    assert (world.world().generation, status(world).restarts) == (1, 0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"uid": 3}', '{"uid": "u"}' + " " * 70_000])
def test_a_report_that_is_none_is_passed_over(text: str) -> None:
    world = FakeCluster(job())
    world.run()
    lease = world.objects["Lease", "digits-worker-0"]
    meta = msgspec.structs.replace(lease.metadata, annotations={REPORT_ANNOTATION: text})
    world.objects["Lease", "digits-worker-0"] = msgspec.structs.replace(lease, metadata=meta)
    world.settle()
    assert world.world().phase == "Gather"


def again(world: FakeCluster, ended: dict[str, Any], step: int | None) -> None:
    fail(world, ended, step=step)
    world.now += 1000
    world.settle()
    world.everybody("Ready", step=step)
    if status(world).phase != "Failed":
        world.everybody("Running", step=step)


@pytest.mark.parametrize(
    ("ended", "steps", "phase"),
    [
        (WRONG, (4, 4), "Failed"),
        (WRONG, (4, 5), "Running"),
        (WRONG, (None, None), "Failed"),
        (KILLED, (4, 4), "Running"),
    ],
)
def test_an_error_repeated_without_a_step_is_the_programs_own(
    ended: dict[str, Any], steps: tuple[int | None, int | None], phase: str
) -> None:
    world = running()
    again(world, ended, steps[0])
    fail(world, ended, step=steps[1])
    world.now += 1000
    world.settle()
    if phase == "Running":
        world.everybody("Ready")
    assert status(world).phase == phase
    if phase == "Failed":
        assert status(world).message == (
            "digits-worker-1: rank 1 ended with code 1: ValueError: no; "
            "the same error twice without a step in between"
        )


def test_a_step_in_between_makes_the_next_start_at_once() -> None:
    world = running(recovery={"maxRestarts": 9})
    for step in range(1, 6):
        fail(world, KILLED, step=step)
        assert status(world).retry_at is None
        world.everybody("Ready", step=step)
        world.everybody("Running", step=step)
    assert status(world).restarts == 5


@pytest.mark.parametrize(("steps", "waits"), [((4, 5), False), ((4, 4), True), ((), True)])
def test_a_lost_pod_waits_only_after_a_loss_without_steps(
    steps: tuple[int, ...], waits: bool
) -> None:
    world = running(recovery={"maxRestarts": 9})
    for step in steps or (None, None):
        world.everybody("Running", step=step)
        world.fail("digits-worker-1")
        world.run()
        world.everybody("Ready", step=step)
    assert (status(world).restarts, world.world().phase == "Gather") == (2, waits)


def test_ranks_wait_for_the_back_off() -> None:
    world = running(recovery={"maxRestarts": 9})
    for _ in range(2):
        fail(world, KILLED)
        world.everybody("Ready")
    assert world.world().phase == "Gather"
    world.now += 10
    world.settle()
    assert world.world().phase == "Run"


def test_restarts_of_ranks_are_used_up_like_others() -> None:
    world = running(recovery={"maxRestarts": 0})
    fail(world, KILLED)
    assert status(world).phase == "Failed"
    assert status(world).message == (
        "digits-worker-1: rank 1 ended by signal 9 (SIGKILL); all restarts are used up (0 of 0)"
    )


def test_a_command_that_is_not_found_ends_the_job() -> None:
    world = running()
    fail(world, {"rank": 0, "at": 1.0, "code": 127, "line": "train: not found"})
    assert (status(world).phase, status(world).conditions[-1].reason) == (
        "Failed",
        "PermanentError",
    )


def test_the_first_rank_to_end_is_named() -> None:
    world = running()
    world.report("digits-worker-0", "Failed", ended={"rank": 0, "at": 2.0, "code": 1})
    world.report("digits-worker-1", "Failed", ended={"rank": 1, "at": 1.0, "signal": 11})
    world.settle()
    assert "rank 1 ended by signal 11" in status(world).message


def test_launchers_leave_together_once_all_are_done() -> None:
    world = running()
    world.report("digits-worker-0", "Done")
    world.settle()
    assert world.world().phase == "Run"
    world.report("digits-worker-1", "Done")
    world.settle()
    assert world.world().phase == "Leave"


def test_a_lost_pod_makes_the_others_gather_and_wait() -> None:
    world = running()
    del world.pods["digits-worker-1"]
    world.settle()
    assert (world.world().generation, world.world().phase) == (2, "Gather")
    world.report("digits-worker-0", "Ready")
    world.settle()
    assert world.world().phase == "Gather"
    world.run()
    world.report("digits-worker-1", "Ready")
    world.settle()
    assert world.world().phase == "Run"


def test_a_lost_pod_after_others_finished_restarts_the_whole_job() -> None:
    world = running()
    world.set("digits-worker-0", "Succeeded")
    world.fail("digits-worker-1")
    world.run()
    assert (status(world).attempt, world.world().generation) == (1, 2)


def test_another_size_is_another_generation() -> None:
    world = running(role(replicas=2, min=1, max=4))
    world.edit(roles=[role(replicas=3, min=1, max=4)])
    world.run()
    assert (world.world().generation, world.world().parts[0].pods) == (2, 3)
    world.everybody("Ready")
    assert (world.world().phase, status(world).restarts) == ("Run", 0)


def test_an_elastic_job_needs_its_launchers() -> None:
    world = FakeCluster(job(role(replicas=2, min=1, max=4), launcher="None"))
    world.settle()
    assert "spec.launcher" in status(world).message


def told(*sums: int) -> FakeCluster:
    """Return a job whose two ranks hold states with these checksums, and lose the second pod."""
    world = running()
    for rank, value in enumerate(sums):
        first = [{"local": 0, "step": 1, "sum": value}]
        world.report(f"digits-worker-{rank}", "Running", first=first)
    world.settle()
    world.fail("digits-worker-1")
    world.run()
    assert world.world().generation == 2
    return world


@pytest.mark.parametrize(
    ("sums", "resume", "sources"),
    [((5, 5), 9, ["10.0.0.1:7"]), ((5, 6), None, []), ((5,), None, [])],
    ids=["equal", "different", "not known of all"],
)
def test_a_pod_without_memory_copies_it_from_an_identical_rank(
    sums: tuple[int, ...], resume: int | None, sources: list[str]
) -> None:
    world = told(*sums)
    world.report("digits-worker-0", "Ready", snapshots=held(9, 8), address="10.0.0.1:7")
    world.report("digits-worker-1", "Ready", address="10.0.0.2:7")
    world.settle()
    assert (world.world().phase, world.world().resume) == ("Run", resume)
    assert world.world().sources == sources


def copy(local: int, rank: int, step: int, own: bool = False) -> dict[str, Any]:
    return {"local": local, "rank": rank, "step": step, "size": 2, "own": own}


COPIES = {"bytes": 1_400_000_000, "every": 1}


@pytest.mark.parametrize(
    ("own", "kept", "resume"),
    [
        # Random numbers alone differ: another rank's copy serves, and its own is better.
        ((1, 1), [9], (9, True)),
        ((1, 1), [8], (8, True)),
        ((1, 1), [], (9, False)),
        # A sampler differs: no other rank's copy serves.
        ((1, 2), [9], (9, True)),
        ((1, 2), [8], (8, True)),
        ((1, 2), [7], (None, False)),
        ((1, 2), [], (None, False)),
    ],
)
def test_a_lost_pods_own_parts_decide_where_it_goes_on(
    own: tuple[int, int], kept: list[int], resume: tuple[int | None, bool]
) -> None:
    world = running()
    for rank, one in enumerate(own):
        first = [{"local": 0, "step": 1, "sum": 5, "own": one}]
        world.report(f"digits-worker-{rank}", "Running", first=first, copies=COPIES)
    world.settle()
    world.fail("digits-worker-1")
    world.run()
    there = [copy(0, 0, 9), copy(0, 0, 8), *(copy(-1, 1, step, own=True) for step in kept)]
    world.report("digits-worker-0", "Ready", snapshots=there, address="10.0.0.1:7")
    world.report("digits-worker-1", "Ready", address="10.0.0.2:7")
    world.settle()
    assert (world.world().resume, world.world().own) == resume
    assert world.world().sources == ([] if resume[0] is None else ["10.0.0.1:7"])


@pytest.mark.parametrize(
    ("own", "kept", "words"),
    [
        ((1, 1), None, "a lost pod costs at most 1 step; 2 x 1.4 GB of memory a rank"),
        ((1, 2), 1, "a lost pod costs at most 1 step; 2 x 1.4 GB of memory a rank"),
        (
            (1, 2),
            None,
            "a lost pod costs all steps since the newest checkpoint: no other pod has a copy; "
            "2 x 1.4 GB of memory a rank",
        ),
    ],
)
def test_a_job_says_what_a_lost_pod_costs(
    own: tuple[int, int], kept: int | None, words: str
) -> None:
    world = running()
    for rank, one in enumerate(own):
        first = [{"local": 0, "step": 1, "sum": 5, "own": one}]
        told = {"first": first, "copies": COPIES} | ({} if kept is None else {"kept": kept})
        world.report(f"digits-worker-{rank}", "Running", **told)
    world.settle()
    assert in_words(status(world).copies, status(world).replicated) == words


BEGUN = "no newer state of every rank was left"
HINT = " (spec.checkpoint.directory keeps it beyond the pods)"


@pytest.mark.parametrize(
    ("resume", "checkpoint", "said"),
    [
        (None, {}, f"; steps 1 to 9 are done again: {BEGUN}{HINT}"),
        (4, {}, f"; steps 5 to 9 are done again: {BEGUN}{HINT}"),
        (4, {"checkpoint": {"directory": "/kept"}}, f"; steps 5 to 9 are done again: {BEGUN}"),
        (8, {}, ""),
        (9, {}, ""),
    ],
)
def test_a_job_says_which_steps_it_does_again(
    resume: int | None, checkpoint: dict[str, Any], said: str
) -> None:
    world = running(**checkpoint)
    world.report("digits-worker-0", "Running", step=9)
    world.fail("digits-worker-1")
    world.run()
    world.everybody("Ready", snapshots=[] if resume is None else held(resume))
    condition = conditions.find(status(world), conditions.RUNNING)
    assert condition is not None
    assert (condition.status, condition.message) == ("True", f"attempt 0 runs{said}")


def test_a_pod_with_a_silent_launcher_is_replaced_uncounted() -> None:
    world = running()
    before = {name: pod.metadata.uid for name, pod in world.pods.items()}
    world.silent.add("digits-worker-1")
    world.reconcile()
    world.silent.clear()
    world.run()
    after = {name: pod.metadata.uid for name, pod in world.pods.items()}
    assert before["digits-worker-0"] == after["digits-worker-0"]
    assert before["digits-worker-1"] != after["digits-worker-1"]
    assert (status(world).restarts, world.world().generation) == (0, 2)


@pytest.mark.parametrize("lost", [True, False])
def test_a_silent_pod_on_a_lost_node_is_replaced_immediately(lost: bool) -> None:
    world = running()
    before = world.pods["digits-worker-1"].metadata.uid
    world.silent.add("digits-worker-1")
    if lost:
        world.lost.add(world.pods["digits-worker-1"].spec.node_name)
    for _ in range(3):
        world.reconcile()
    there = world.pods["digits-worker-1"].metadata
    assert (there.uid != before) == lost
    assert (there.deletion_timestamp is None) == lost


def test_an_earlier_pods_silent_launcher_does_not_count_against_this() -> None:
    world = FakeCluster(job())
    world.run()
    world.silent.add("digits-worker-1")
    world.settle()
    assert (status(world).generation, status(world).replacing) == (1, {})


def test_parts_of_tensors_serve_only_their_own_ranks() -> None:
    world = running(role(replicas=2, min=1, max=3))
    part = {"local": 0, "step": 7, "sharded": True, "size": 2}
    stored = [{"step": 4, "size": 2, "free": True}]
    world.edit(roles=[role(replicas=3, min=1, max=3)])
    world.settle()
    world.run()
    world.everybody("Ready", snapshots=[part], stored=stored)
    assert (world.world().resume, world.world().stored) == (4, True)


def test_a_checkpoint_of_differing_states_needs_its_number_of_ranks() -> None:
    world = running(role(replicas=2, min=1, max=3))
    world.edit(roles=[role(replicas=3, min=1, max=3)])
    world.settle()
    world.run()
    world.everybody("Ready", stored=[{"step": 9, "size": 2}, {"step": 4, "size": 3}])
    assert world.world().resume == 4


def part(local: int, rank: int, step: int) -> dict[str, Any]:
    return {"local": local, "rank": rank, "step": step, "size": 2, "sharded": True}


@pytest.mark.parametrize(
    ("kept", "resume", "sources"),
    [
        ([6, 7], 7, ["10.0.0.1:7"]),
        ([6], 6, ["10.0.0.1:7"]),
        ([5], None, []),
        ([], None, []),
    ],
)
def test_a_lost_pods_parts_come_from_where_they_are_kept(
    kept: list[int], resume: int | None, sources: list[str]
) -> None:
    world = running(role(replicas=2))
    world.fail("digits-worker-1")
    world.run()
    own = [part(0, 0, 7), part(0, 0, 6)]
    held = [*own, *(part(-1, 1, step) for step in kept)]
    world.report("digits-worker-0", "Ready", snapshots=held, address="10.0.0.1:7")
    world.report("digits-worker-1", "Ready", address="10.0.0.2:7")
    world.settle()
    assert (world.world().phase, world.world().resume) == ("Run", resume)
    assert world.world().sources == sources


def test_launchers_keep_copies_once_all_hold_a_state() -> None:
    world = running(role(replicas=2))
    addresses = ["10.0.0.1:7", "10.0.0.2:7"]
    first = [{"local": 0, "step": 1, "sum": 5}]
    for pod, address in enumerate(addresses):
        assert world.world().peers == []
        world.report(f"digits-worker-{pod}", "Running", first=first, address=address)
        world.settle()
    assert world.world().peers == addresses
    world.fail("digits-worker-1")
    world.run()
    assert world.world().peers == []
