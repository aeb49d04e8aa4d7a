"""From creation to the end: what a job's status says and what is there, step by step."""

from base64 import b64decode
from contextlib import suppress
from typing import Any

import pytest
from msgspec import structs
from tests.support.job_world import Crash, FakeCluster
from tests.support.jobs import job, mpi_roles, role

from lockstep.api import timestamp
from lockstep.api.checkpoint import Checkpoint
from lockstep.api.gang import Gang, TopologyWish
from lockstep.api.training import TrainingJob


def phase(world: FakeCluster) -> str:
    assert world.job is not None
    return world.job.status.phase


def true_conditions(world: FakeCluster) -> set[str]:
    assert world.job is not None
    return {c.type for c in world.job.status.conditions if c.status == "True"}


def gang(world: FakeCluster) -> Gang:
    found = world.objects["Gang", "digits"]
    assert isinstance(found, Gang)
    return found


def test_a_job_goes_from_pending_to_succeeded() -> None:
    world = FakeCluster(job())
    world.settle()
    assert phase(world) == "Pending"
    assert true_conditions(world) == {"Created"}
    assert set(world.objects) == {
        *(("Service", "digits"), ("Gang", "digits"), ("ConfigMap", "digits-world")),
        ("Secret", "digits-key"),
        *(("Role", "digits-launcher"), ("RoleBinding", "digits-launcher")),
        *(("Lease", "digits-worker-0"), ("Lease", "digits-worker-1")),
    }
    assert set(world.pods) == {"digits-worker-0", "digits-worker-1"}

    world.place()
    world.settle()
    assert phase(world) == "Starting"
    assert true_conditions(world) == {"Created", "Placed"}

    world.start()
    world.settle()
    assert phase(world) == "Running"
    assert true_conditions(world) == {"Created", "Placed", "Running"}

    world.set("digits-worker-1", "Succeeded")
    world.settle()
    assert phase(world) == "Running"

    world.now += 90
    world.set("digits-worker-0", "Succeeded")
    world.settle()
    assert phase(world) == "Succeeded"
    assert world.job is not None
    assert world.job.status.message == "done after 1m30s"
    assert world.job.status.replica_statuses["worker"].succeeded == 2
    assert true_conditions(world) == {"Created", "Placed", "Succeeded"}
    assert world.told == ["Placed", "Running", "Succeeded"]


@pytest.mark.parametrize(
    ("given", "done", "expected"),
    [
        (job(), ["worker-0"], "Running"),
        (job(), ["worker-0", "worker-1"], "Succeeded"),
        (job(role(replicas=3, min=1, max=4)), ["worker-1", "worker-2"], "Running"),
        (job(role(replicas=2, min=1, max=4)), ["worker-0", "worker-1"], "Succeeded"),
        (job(*mpi_roles(), framework="mpi"), ["worker-0", "worker-1"], "Running"),
        (job(*mpi_roles(), framework="mpi"), ["launcher-0"], "Succeeded"),
        (job(role("a", 1), role("b", 1), framework="plain"), ["a-0"], "Running"),
        (job(role("a", 1), role("b", 1), framework="plain"), ["a-0", "b-0"], "Succeeded"),
    ],
)
def test_a_job_succeeds_when_its_deciding_pods_have(
    given: TrainingJob, done: list[str], expected: str
) -> None:
    world = FakeCluster(given)
    world.run()
    for name in done:
        world.set(f"digits-{name}", "Succeeded")
    world.settle()
    assert phase(world) == expected


def test_an_mpi_job_creates_files_and_keys_before_pods() -> None:
    world = FakeCluster(job(*mpi_roles(), framework="mpi"))
    decision = world.reconcile()
    assert decision is not None
    kinds = [a.resource.kind for a in decision.actions]
    assert kinds == ["Secret", "ConfigMap", "Service", "Service", "Gang", "Pod", "Pod", "Pod"]


def test_the_launcher_learns_another_ssh_port_and_keeps_its_keys() -> None:
    world = FakeCluster(job(*mpi_roles(), framework="mpi"))
    world.settle()
    before = world.objects["Secret", "digits-ssh"]
    world.edit(roles=list(mpi_roles(env={"LOCKSTEP_SSH_PORT": "2222"})))
    world.settle()
    after = world.objects["Secret", "digits-ssh"]
    assert "Port 2222\n" in b64decode(after.data["config"]).decode()
    assert after.metadata.uid == before.metadata.uid


def test_discover_hosts_follows_the_workers_that_run() -> None:
    world = FakeCluster(job(*mpi_roles(), framework="mpi"))
    world.settle()
    assert "echo" not in world.objects["ConfigMap", "digits-config"].data["discover_hosts.sh"]
    world.run()
    script = world.objects["ConfigMap", "digits-config"].data["discover_hosts.sh"]
    assert script.count("echo") == 2


@pytest.mark.parametrize(
    ("policy", "left", "gang"),
    [
        ("None", {"launcher-0", "worker-0", "worker-1"}, True),
        ("Running", {"launcher-0"}, False),
        ("All", set(), False),
    ],
)
def test_the_end_leaves_what_the_policy_says(policy: str, left: set[str], gang: bool) -> None:
    world = FakeCluster(job(*mpi_roles(), framework="mpi", runPolicy={"cleanPods": policy}))
    world.run()
    world.set("digits-launcher-0", "Succeeded")
    world.settle()
    assert set(world.pods) == {f"digits-{name}" for name in left}
    assert (("Gang", "digits") in world.objects) == gang


def test_suspending_gives_everything_back_and_resuming_goes_on() -> None:
    world = FakeCluster(job())
    world.run()
    world.edit(suspend=True)
    world.settle()
    assert phase(world) == "Suspended"
    assert not world.pods
    assert ("Gang", "digits") not in world.objects
    assert true_conditions(world) == {"Created", "Suspended"}

    world.edit(suspend=False)
    world.settle()
    assert phase(world) == "Pending"
    world.run()
    assert phase(world) == "Running"
    assert world.job is not None
    assert world.job.status.restarts == 0
    assert "Suspended" in world.told
    assert "Resumed" in world.told


def test_ending_pods_are_not_taken_for_the_resumed_jobs() -> None:
    world = FakeCluster(job())
    world.run()
    world.edit(suspend=True)
    world.reconcile()
    world.edit(suspend=False)
    world.reconcile()
    assert phase(world) == "Pending"
    assert world.job is not None
    assert world.job.status.message.endswith("of the last attempt to end")
    world.run()
    assert (phase(world), world.job.status.restarts) == ("Running", 0)


def test_pods_that_are_leaving_do_not_make_a_job_placed() -> None:
    world = FakeCluster(job())
    world.settle()
    world.place()
    world.ask_to_end("digits-worker-0")
    world.reconcile()
    assert true_conditions(world) == {"Created"}


def test_a_job_created_suspended_makes_nothing() -> None:
    world = FakeCluster(job(suspend=True))
    world.settle()
    assert not world.pods
    assert not world.objects
    assert phase(world) == "Suspended"
    world.edit(suspend=False)
    world.run()
    assert phase(world) == "Running"
    assert world.job is not None
    assert world.job.status.attempt == 0


def elastic(**more: Any) -> FakeCluster:
    world = FakeCluster(job(role(replicas=3, min=2, max=5), **more))
    world.run()
    return world


@pytest.mark.parametrize(("replicas", "indices"), [(5, "01234"), (3, "012"), (2, "01")])
def test_an_elastic_job_is_scaled_while_it_runs(replicas: int, indices: str) -> None:
    world = elastic()
    before = {n: p.metadata.uid for n, p in world.pods.items()}
    world.edit(roles=[role(replicas=replicas, min=2, max=5)])
    world.run()
    assert set(world.pods) == {f"digits-worker-{i}" for i in indices}
    assert all(world.pods[n].metadata.uid == before[n] for n in world.pods if n in before)
    group = world.objects["Gang", "digits"].spec.groups[0]
    assert (group.min, group.desired) == (2, replicas if replicas > 2 else None)
    assert world.job is not None
    assert (world.job.status.restarts, phase(world)) == (0, "Running")


def test_the_gang_carries_what_its_job_states_of_the_run() -> None:
    world = FakeCluster(job(runPolicy={"activeDeadline": "1h"}))
    world.run()
    assert gang(world).metadata.annotations == {"lockstep.dev/runtime": "3600"}


def test_the_gang_carries_the_jobs_wait_limit_while_it_waits() -> None:
    world = FakeCluster(job(maxWait="2h"))
    world.run()
    assert gang(world).metadata.annotations == {"lockstep.dev/max-wait": "2h"}
    assert gang(world).spec.max_wait is None  # the job ends it, and nobody else
    for stated, known in (("3h", {"lockstep.dev/max-wait": "3h"}), (None, {})):
        world.edit(maxWait=stated)
        world.run()
        assert gang(world).metadata.annotations == known


def test_a_role_updates_how_close_its_running_pods_must_be() -> None:
    world = FakeCluster(job(role(topology={"required": "leaf"})))
    world.run()
    before = {name: pod.metadata.uid for name, pod in world.pods.items()}
    assert gang(world).spec.groups[0].topology == TopologyWish(required="leaf")
    for wish, known in (({"preferred": "node"}, TopologyWish(preferred="node")), (None, None)):
        world.edit(roles=[role(topology=wish)])
        world.run()
        assert gang(world).spec.groups[0].topology == known
    assert {name: pod.metadata.uid for name, pod in world.pods.items()} == before
    assert world.job is not None
    assert (world.job.status.restarts, phase(world)) == (0, "Running")


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"


@pytest.mark.parametrize(
    ("says", "shown", "known"),
    [
        (EARLY, None, EARLY),
        (None, EARLY, EARLY),
        (LATE, EARLY, LATE),
        (EARLY, LATE, LATE),
        ("2026-01-01T01:10:00.5+01:00", None, LATE),
        ("soon", EARLY, EARLY),
        ("soon", None, None),
    ],
)
def test_the_gang_is_told_when_the_job_was_last_saved(
    says: str | None, shown: str | None, known: str | None
) -> None:
    world = FakeCluster(job())
    world.run()
    if says is not None:
        world.annotate("lockstep.dev/checkpoint", says)
    assert world.job is not None
    saved = structs.replace(world.job.status, last_checkpoint=shown)
    world.job = structs.replace(world.job, status=saved)
    world.settle()
    assert world.job.status.last_checkpoint == gang(world).status.last_checkpoint == known
    odd = [c for c in world.job.status.conditions if c.type == "CheckpointUnreadable"]
    assert ["'soon', which is not a time" in c.message for c in odd] == [True] * (says == "soon")
    assert ("CheckpointUnreadable" in world.told) == bool(odd)
    world.annotate("lockstep.dev/checkpoint", LATE)
    world.settle()
    assert true_conditions(world) == {"Created", "Placed", "Running"}


def test_the_gang_says_that_its_job_saves_its_state() -> None:
    world = FakeCluster(job(checkpoint={"interval": "10m"}))
    world.run()
    assert gang(world).spec.checkpoint == Checkpoint(interval="10m")


def test_a_resumed_job_keeps_its_place_before_its_pods_exist() -> None:
    world = FakeCluster(job())
    world.run()
    first = timestamp.show(world.now)
    writes = world.calls
    world.settle()
    assert world.calls == writes
    assert world.job is not None
    assert world.job.status.queued_at == gang(world).metadata.creation_timestamp == first
    world.edit(suspend=True)
    world.settle()
    world.now += 3600
    world.edit(suspend=False)
    while not world.pods:  # one write at a time
        world.calls_left = 1
        with suppress(Crash):
            world.reconcile()
    assert gang(world).status.queued_at == first
    world.calls_left = None
    world.run()
    assert gang(world).metadata.creation_timestamp != first
    assert world.job.status.queued_at == gang(world).status.queued_at == first


def test_a_job_created_suspended_is_queued_from_its_first_resumption() -> None:
    world = FakeCluster(job(suspend=True))
    world.settle()
    world.now += 3600
    world.edit(suspend=False)
    world.run()
    assert world.job is not None
    assert world.job.status.queued_at == timestamp.show(world.now)


def test_a_gang_from_before_keeps_the_place_that_it_had() -> None:
    world = FakeCluster(job())
    world.run()
    assert world.job is not None
    made = timestamp.show(world.now)
    world.job = structs.replace(world.job, status=structs.replace(world.job.status, queued_at=None))
    world.now += 3600
    world.settle()
    assert world.job.status.queued_at == made


def test_resizing_a_fixed_job_restarts_it_and_counts_no_restart() -> None:
    world = FakeCluster(job())
    world.run()
    world.edit(roles=[role(replicas=3)])
    world.run()
    assert world.job is not None
    assert (world.job.status.attempt, world.job.status.restarts) == (1, 0)
    assert len(world.pods) == 3
    assert all(p.metadata.labels["lockstep.dev/attempt"] == "1" for p in world.pods.values())
    assert "Resized" in world.told


def test_a_pod_beyond_the_minimum_may_wait_while_others_run() -> None:
    world = FakeCluster(job(role(replicas=3, min=2, max=5)))
    world.settle()
    kept = world.pods.pop("digits-worker-2")
    world.place()
    world.start()
    world.pods["digits-worker-2"] = kept
    world.settle()
    assert phase(world) == "Running"


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    world = FakeCluster(job())
    world.run()
    assert world.job is not None
    from msgspec import structs

    gone = structs.replace(world.job.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    world.job = structs.replace(world.job, metadata=gone)
    world.fail("digits-worker-0")
    decision = world.reconcile()
    assert decision is not None
    assert decision.actions == ()
    assert decision.status.phase == "Deleting"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (job(role(command=None)), 1),
        (job(), 0),
        (job(role(command=None), launcher="None"), 0),
        (job(role(command=None), framework="plain"), 0),
    ],
)
def test_a_job_without_a_command_reports_once_its_missing_launcher(
    given: TrainingJob, said: int
) -> None:
    world = FakeCluster(given)
    world.run()
    world.settle()
    assert world.told.count("NoLauncher") == said
