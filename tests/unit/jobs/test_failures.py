"""What a failure means: a new attempt, one pod replaced, or the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.support.job_world import FakeCluster
from tests.support.jobs import job, mpi_roles, role

from lockstep.api.core import PodStatus
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.api.wire import convert
from lockstep.jobs.decide import LOOK_AGAIN, decide
from lockstep.jobs.failures import backoff
from lockstep.runtime.actions import Delete

ELASTIC = role(replicas=3, min=2, max=4)


def status(world: FakeCluster) -> TrainingJobStatus:
    assert world.job is not None
    return world.job.status


def running(given: TrainingJob) -> FakeCluster:
    world = FakeCluster(given)
    world.run()
    assert status(world).phase == "Running"
    return world


def uids(world: FakeCluster) -> dict[str, str]:
    return {n.removeprefix("digits-"): p.metadata.uid for n, p in world.pods.items()}


@pytest.mark.parametrize(
    ("given", "victim", "kept"),
    [
        (job(launcher="None"), "worker-1", set()),
        (job(launcher="None"), "worker-0", set()),
        (job(framework="plain"), "worker-1", set()),
        (job(*mpi_roles(), framework="mpi"), "worker-1", set()),
        (job(*mpi_roles(), framework="mpi"), "launcher-0", set()),
        (job(), "worker-1", {"worker-0"}),
        (job(), "worker-0", {"worker-1"}),
        (job(ELASTIC), "worker-2", {"worker-0", "worker-1"}),
        (job(ELASTIC), "worker-0", {"worker-1", "worker-2"}),
        (job(ELASTIC, framework="plain"), "worker-0", {"worker-1", "worker-2"}),
        (
            job(*mpi_roles(workers=3, min=2, max=4), framework="mpi"),
            "worker-0",
            {"launcher-0", "worker-1", "worker-2"},
        ),
        (job(*mpi_roles(workers=3, min=2, max=4), framework="mpi"), "launcher-0", set()),
    ],
)
@pytest.mark.parametrize("how", ["fails", "is evicted", "is deleted", "vanishes"])
def test_who_is_replaced_when_a_pod_is_gone(
    given: TrainingJob, victim: str, kept: set[str], how: str
) -> None:
    world = running(given)
    before = uids(world)
    name = f"digits-{victim}"
    if how == "fails":
        world.fail(name)
    elif how == "is evicted":
        world.set(name, "Failed", reason="Evicted", message="the node was low on memory")
    elif how == "is deleted":
        world.ask_to_end(name)
    else:
        del world.pods[name]
    world.run()
    after = uids(world)
    assert after.keys() == before.keys()
    assert {n for n in after if after[n] == before[n]} == kept
    assert (status(world).phase, status(world).restarts) == ("Running", 1)
    assert status(world).attempt == (0 if kept else 1)
    assert status(world).replacing == {}


@pytest.mark.parametrize("how", ["its node stops", "it is evicted", "it is gone at once"])
@pytest.mark.parametrize(("given", "attempts"), [(job(launcher="None"), 1), (job(ELASTIC), 0)])
def test_what_the_cluster_takes_away_uses_up_no_restart(
    given: TrainingJob, attempts: int, how: str
) -> None:
    world = running(given)
    last = sorted(world.pods)[-1]
    for _ in range(given.spec.recovery.max_restarts + 2):
        if how == "it is gone at once":
            world.preempt(last)
        else:
            world.disrupt(last, "Failed" if how == "its node stops" else "Running")
        if how == "it is evicted":
            world.ask_to_end(last)
        world.run()
        assert (status(world).phase, status(world).restarts) == ("Running", 0)
    assert status(world).attempt == attempts * (given.spec.recovery.max_restarts + 2)


def test_the_next_attempt_waits_until_all_pods_have_ended() -> None:
    world = running(job(launcher="None"))
    world.fail("digits-worker-0")
    world.reconcile()
    assert {n for n, p in world.pods.items() if p.metadata.deletion_timestamp} == set(world.pods)
    world.reconcile()
    assert status(world).phase == "Restarting"
    assert status(world).message == (
        "waits for digits-worker-0, digits-worker-1 of the last attempt to end, "
        "after this: digits-worker-0 failed with exit code 1"
    )
    assert len(world.made) == 2
    world.let_go()
    world.reconcile()
    assert world.made[2:] == [("digits-worker-0", "1"), ("digits-worker-1", "1")]


def test_a_silent_node_delays_the_next_attempt_for_limited_time() -> None:
    world = running(job(launcher="None"))
    world.fail("digits-worker-0")
    decision = None
    for _ in range(3):
        decision = world.reconcile()
    assert decision is not None
    assert decision.again == 30 + 120
    world.now += decision.again
    world.reconcile()
    assert not world.pods


def test_a_pod_that_cannot_be_removed_is_retried_with_pauses() -> None:
    world = running(job(launcher="None"))
    world.fail("digits-worker-0")
    world.reconcile()
    world.now += 1000
    decision = decide(world.seen(), world.now)
    assert [a.grace for a in decision.actions if isinstance(a, Delete)] == [0, 0]
    assert decision.again == LOOK_AGAIN


@pytest.mark.parametrize(
    ("given", "name", "phase"),
    [(job(launcher="None"), "worker-1", "Restarting"), (job(ELASTIC), "worker-2", "Running")],
)
def test_a_restart_is_told_with_its_cause(given: TrainingJob, name: str, phase: str) -> None:
    world = running(given)
    world.fail(f"digits-{name}", 5)
    decision = decide(world.seen(), world.now)
    assert [(n.reason, n.message) for n in decision.notes] == [
        ("Restarting", f"digits-{name} failed with exit code 5; restart 1")
    ]
    assert decision.status.phase == phase


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_job_fails_once_its_restarts_are_used_up(most: int) -> None:
    world = running(job(launcher="None", recovery={"maxRestarts": most}))
    for _ in range(most):
        world.fail("digits-worker-1")
        world.settle()
        world.now += 1000
        world.run()
        assert status(world).phase == "Running"
    world.fail("digits-worker-1", code=3)
    world.settle()
    assert (status(world).phase, status(world).restarts) == ("Failed", most)
    assert status(world).message.startswith("digits-worker-1 failed with exit code 3; ")
    assert status(world).conditions[-1].reason == "RestartsUsedUp"
    assert status(world).replica_statuses["worker"].failed == 1
    assert set(world.pods) == {"digits-worker-1"}


VALUE = "ValueError: bad value 3"


@pytest.mark.parametrize(
    ("words", "code", "pause", "reason"),
    [
        ((VALUE, VALUE), 1, 10, "SameErrorTwice"),
        ((VALUE, "ValueError: bad value 4"), 1, 10, None),
        (("epoch 3", "epoch 3"), 1, 10, None),
        ((VALUE, VALUE), 1, 900, None),
        ((VALUE, VALUE), 137, 10, None),
    ],
)
def test_the_same_error_of_a_program_twice_ends_it(
    words: tuple[str, str], code: int, pause: int, reason: str | None
) -> None:
    world = running(job(launcher="None", recovery={"maxRestarts": 5}))
    for said in words:
        world.now += pause
        world.fail("digits-worker-1", code, message=said)
        world.settle()
        world.now += 1000
        world.run()
    failed = [c.reason for c in status(world).conditions if c.type == "Failed"]
    assert failed == ([reason] if reason else [])
    assert status(world).restarts == (1 if reason else 2)


@pytest.mark.parametrize("code", [126, 127])
def test_an_exit_code_beyond_help_by_restarts_ends_the_job(code: int) -> None:
    world = running(job(launcher="None"))
    world.fail("digits-worker-0", code)
    world.settle()
    assert status(world).phase == "Failed"
    assert status(world).conditions[-1].reason == "PermanentError"
    assert "its command" in status(world).message


@pytest.mark.parametrize(("given", "attempt"), [(job(launcher="None"), 1), (job(ELASTIC), 0)])
def test_pods_that_fail_together_count_once(given: TrainingJob, attempt: int) -> None:
    world = running(given)
    names = sorted(world.pods)[-2:]
    if attempt == 0:
        names = ["digits-worker-1", "digits-worker-2"]
    for name in names:
        world.fail(name)
    world.run()
    assert (status(world).restarts, status(world).attempt) == (1, attempt)


@pytest.mark.parametrize("how", ["asked to end", "gone"])
def test_a_pod_lost_before_placement_is_replaced_and_not_counted(how: str) -> None:
    world = FakeCluster(job(launcher="None"))
    world.settle()
    if how == "gone":
        del world.pods["digits-worker-0"]
    else:
        world.ask_to_end("digits-worker-0")
    world.run()
    assert (status(world).restarts, status(world).attempt) == (0, 0)
    assert status(world).phase == "Running"


def failing(world: FakeCluster, after: float) -> float:
    """Let a worker fail *after* seconds of running; return when the next attempt is made."""
    world.now += after
    world.fail("digits-worker-0")
    world.settle()
    failed = world.now
    while not world.pods:
        decision = world.reconcile()
        assert decision is not None
        world.now += decision.again or 0
    return world.now - failed


def test_the_first_restart_is_immediate_and_later_ones_back_off() -> None:
    world = running(job(launcher="None", recovery={"maxRestarts": 20}))
    delays = []
    for _ in range(9):
        delays.append(failing(world, after=10))
        world.run()
    assert delays[0] == 0
    assert [round(d) for d in delays[1:]] == pytest.approx(
        [5, 10, 20, 40, 80, 160, 300, 300], abs=1.01
    )


def test_a_long_run_forgets_earlier_failures() -> None:
    world = running(job(launcher="None", recovery={"maxRestarts": 20}))
    for _ in range(3):
        failing(world, after=10)
        world.run()
    assert failing(world, after=3600) == 0


@given(st.integers(0, 1000))
def test_back_off_grows_and_is_bounded(row: int) -> None:
    assert 0 <= backoff(row) <= backoff(row + 1) <= 300


def test_a_back_off_is_announced() -> None:
    world = running(job(launcher="None", recovery={"maxRestarts": 20}))
    failing(world, after=1)
    world.run()
    world.fail("digits-worker-0")
    world.settle()
    said: Any = status(world)
    assert said.retry_at is not None
    assert said.message.startswith(f"starts again at {said.retry_at}, after this: digits-worker-0")


def end(world: FakeCluster, name: str, ended: dict[str, Any]) -> None:
    tree = {
        "phase": "Failed",
        "containerStatuses": [{"name": "main", "state": {"terminated": ended}}],
    }
    world.pods[name] = structs.replace(world.pods[name], status=convert(tree, PodStatus))


def test_the_first_pod_to_fail_is_named() -> None:
    world = running(job(launcher="None", recovery={"maxRestarts": 0}))
    end(world, "digits-worker-0", {"exitCode": 1, "finishedAt": "2026-01-01T00:00:02Z"})
    end(world, "digits-worker-1", {"exitCode": 9, "finishedAt": "2026-01-01T00:00:01Z"})
    world.settle()
    assert status(world).message.startswith("digits-worker-1 failed with exit code 9 (and 1 more)")


TORCHRUN = """\
python: can't open file '/missing.py'
E1123 17:00:00.000000 12 torch/distributed/elastic/multiprocessing/api.py:987] failed (exitcode: 2)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
missing.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-23_17:00:00
  host      : vm
  rank      : 1 (local_rank: 1)
  exitcode  : 2 (pid: 123)
  error_file: <N/A>
============================================================
"""


OPEN_MPI = f"""\
{"-" * 74}
mpirun has detected an attempt to run as root.

Running as root is *strongly* discouraged as any mistake can destroy files.

We reiterate our advice against doing so - please proceed at your own risk.
{"-" * 74}
"""


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ({"exitCode": 1, "reason": "Error"}, "failed with exit code 1"),
        ({"exitCode": 137, "reason": "OOMKilled"}, "was OOMKilled at 200Mi"),
        (
            {"exitCode": 137, "signal": 9, "reason": "OOMKilled", "message": "192 MiB"},
            "was OOMKilled at 200Mi: 192 MiB",
        ),
        ({"exitCode": 137, "signal": 9, "reason": "Error"}, "failed with exit code 137 (signal 9)"),
        (
            {"exitCode": 1, "message": "Traceback\nValueError: x"},
            "failed with exit code 1: ValueError: x",
        ),
        ({"exitCode": 1, "message": f"no luck\n{'=' * 60}"}, "failed with exit code 1: no luck"),
        (
            {"exitCode": 1, "message": TORCHRUN},
            "failed with exit code 1: rank 1 ended with exit code 2: "
            "python: can't open file '/missing.py'",
        ),
        (
            {"exitCode": 1, "message": OPEN_MPI},
            "failed with exit code 1: mpirun has detected an attempt to run as root.",
        ),
    ],
)
def test_the_message_says_how_the_pod_ended(ended: dict[str, Any], expected: str) -> None:
    limited = role()
    container = limited["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"memory": "200Mi"}}
    world = running(job(limited, launcher="None", recovery={"maxRestarts": 0}))
    end(world, "digits-worker-0", ended)
    world.settle()
    message = status(world).message
    assert message == f"digits-worker-0 {expected}; all restarts are used up (0 of 0)"


@pytest.mark.parametrize(
    ("said", "permanent"),
    [
        ("cannot run 'nosuchcmd': No such file or directory", True),
        ("cannot run '/etc/passwd': Permission denied", True),
        ("working directory /nope: No such file or directory", True),
        ('exec: "train": executable file not found in $PATH', True),
        ("mount /data: No such file or directory", False),
        ("the process that watches over the container did not start", False),
    ],
)
def test_what_can_never_start_is_not_tried_again(said: str, permanent: bool) -> None:
    world = running(job())
    end(world, "digits-worker-0", {"exitCode": 128, "reason": "StartError", "message": said})
    world.settle()
    assert (status(world).phase == "Failed") == permanent
    assert said in status(world).message or not permanent
    assert status(world).restarts == (0 if permanent else 1)
