"""Jobs on a real API server, scheduler and node: start, end, restart, limits of time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.training import Cluster, role
from tests.support.waiting import eventually

from lockstep.api.core import SERVICES
from lockstep.api.gang import GANGS
from lockstep.api.names import CHECKPOINT_ANNOTATION
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS, TrainingJobStatus
from lockstep.kube.errors import NotFound

FOREVER = "sleep 1000"


def conditions(status: TrainingJobStatus) -> set[str]:
    return {c.type for c in status.conditions if c.status == "True"}


async def gone(cluster: Cluster, resource: Resource[Any], name: str) -> bool:
    try:
        await cluster.client.get(resource, name, "default")
    except NotFound:
        return True
    return False


async def test_a_job_of_two_pods_succeeds(cluster: Cluster) -> None:
    command = 'test "$LOCKSTEP_JOB" = two && getent hosts "$(hostname).two"'
    await cluster.submit("two", role(command))
    status = await cluster.reaches("two", "Succeeded")
    assert conditions(status) == {"Created", "Placed", "Succeeded"}
    assert status.replica_statuses["worker"].succeeded == 2
    assert status.restarts == 0
    assert status.start_time is not None
    assert status.completion_time is not None
    await eventually(lambda: gone(cluster, GANGS, "two"), 60, "the end of the gang")


async def test_a_lost_pod_without_a_launcher_restarts_the_whole_set(cluster: Cluster) -> None:
    await cluster.submit("struck", role(FOREVER), framework="pytorch", launcher="None")
    await cluster.reaches("struck", "Running")
    before = await cluster.pods("struck")
    await cluster.kill("struck", "worker-1")

    async def again() -> bool:
        job = await cluster.job("struck")
        return job is not None and (job.status.attempt, job.status.phase) == (1, "Running")

    await eventually(again, 90, "the second attempt")
    after = await cluster.pods("struck")
    assert after.keys() == before.keys()
    assert not {p.metadata.uid for p in after.values()} & {p.metadata.uid for p in before.values()}
    job = await cluster.job("struck")
    assert job is not None
    assert job.status.restarts == 1
    restarting = next(c for c in job.status.conditions if c.type == "Restarting")
    assert restarting.message.startswith("struck-worker-1 failed with exit code 137")


async def test_an_elastic_job_replaces_only_the_pod_that_was_killed(cluster: Cluster) -> None:
    await cluster.submit("bends", role(FOREVER, replicas=3, min=2, max=4), framework="pytorch")
    before = await cluster.running("bends", 3)
    await cluster.kill("bends", "worker-2")

    async def replaced() -> bool:
        now = await cluster.pods("bends")
        new = now.get("worker-2")
        return (
            new is not None
            and new.metadata.uid != before["worker-2"].metadata.uid
            and new.status.phase == "Running"
        )

    await eventually(replaced, 90, "another worker-2")
    now = await cluster.pods("bends")
    for name in ("worker-0", "worker-1"):
        assert now[name].metadata.uid == before[name].metadata.uid


async def test_an_elastic_job_is_scaled(cluster: Cluster) -> None:
    await cluster.submit("scaled", role(FOREVER, replicas=2, min=1, max=3))
    await cluster.reaches("scaled", "Running")

    async def size(wanted: int) -> None:
        await cluster.edit("scaled", roles=[role(FOREVER, replicas=wanted, min=1, max=3)])
        await cluster.running("scaled", wanted)

    await size(3)
    await size(1)
    status = await cluster.reaches("scaled", "Running")
    assert (status.restarts, status.attempt) == (0, 0)


async def test_a_suspended_job_returns_its_place_and_continues_when_resumed(
    cluster: Cluster,
) -> None:
    await cluster.submit("sleeper", role(FOREVER))
    before = await cluster.reaches("sleeper", "Running")
    saved = {"metadata": {"annotations": {CHECKPOINT_ANNOTATION: "2026-01-01T00:00:00Z"}}}
    await cluster.client.patch(TRAINING_JOBS, "sleeper", saved, "default")
    await cluster.edit("sleeper", suspend=True)
    await cluster.reaches("sleeper", "Suspended")

    async def empty() -> bool:
        return not await cluster.pods("sleeper")

    await eventually(empty, 90, "the end of the pods")
    await eventually(lambda: gone(cluster, GANGS, "sleeper"), 90, "the end of the gang")
    await cluster.edit("sleeper", suspend=False)
    status = await cluster.reaches("sleeper", "Running")
    assert (status.restarts, status.queued_at) == (0, before.queued_at)

    async def told() -> bool:
        gang = (await cluster.client.get(GANGS, "sleeper", "default")).status
        known = gang.queued_at, gang.last_checkpoint
        return known == (before.queued_at, "2026-01-01T00:00:00Z")

    await eventually(told, 90, "what the gang is told of the job")


async def test_a_job_over_its_deadline_fails_and_its_pods_end(cluster: Cluster) -> None:
    await cluster.submit("late", role(FOREVER), runPolicy={"activeDeadline": "1s"})
    status = await cluster.reaches("late", "Failed")
    assert status.message == "not done 1s after its start (activeDeadline)"

    async def empty() -> bool:
        return not await cluster.pods("late")

    await eventually(empty, 90, "the end of the pods")


async def test_a_finished_job_is_deleted_with_its_objects_in_time(cluster: Cluster) -> None:
    await cluster.submit("brief", role("true"), runPolicy={"timeToLive": "1s"})

    await eventually(lambda: gone(cluster, TRAINING_JOBS, "brief"), 90, "the end of the job")

    async def no_pods() -> bool:
        return not await cluster.pods("brief")

    await eventually(no_pods, 60, "the end of the pods")
    await eventually(lambda: gone(cluster, SERVICES, "brief"), 60, "the end of the service")


async def test_a_job_not_placed_in_time_fails_and_says_so(cluster: Cluster) -> None:
    huge = {"container": {"resources": {"requests": {"cpu": "100000"}}}}
    await cluster.submit("huge", role("true", **huge), maxWait="2s")
    status = await cluster.reaches("huge", "Failed")
    assert status.message.startswith("not placed within 2s (maxWait); last: ")
    assert "cpu" in status.message.lower()


async def test_restarts_are_used_up(cluster: Cluster) -> None:
    await cluster.submit("hopeless", role("exit 3"), recovery={"maxRestarts": 1})
    status = await cluster.reaches("hopeless", "Failed")
    assert status.restarts == 1
    assert "failed with exit code 3" in status.message
    assert status.message.endswith("all restarts are used up (1 of 1)")


async def test_controllers_that_are_killed_carry_on_where_they_were(cluster: Cluster) -> None:
    await cluster.submit("steady", role(FOREVER))
    await cluster.reaches("steady", "Running")
    before = await cluster.pods("steady")
    cluster.controllers.kill()
    await cluster.submit("meanwhile", role("true"))
    cluster.controllers.start()
    await cluster.reaches("meanwhile", "Succeeded")
    status = await cluster.reaches("steady", "Running")
    assert (status.restarts, status.attempt) == (0, 0)
    after = await cluster.pods("steady")
    assert {n: p.metadata.uid for n, p in after.items()} == {
        n: p.metadata.uid for n, p in before.items()
    }


@pytest.mark.soak
async def test_controllers_killed_again_and_again_lose_and_double_nothing(cluster: Cluster) -> None:
    names = [f"chaos-{i}" for i in range(6)]
    for i, name in enumerate(names):
        cluster.controllers.kill()
        await cluster.submit(name, role(f"sleep {1 + i % 3}", replicas=3), framework="pytorch")
        cluster.controllers.start()
        # It ends at another point of its work each time.
        await _some_pods(cluster, name, i % 4)
    for name in names:
        status = await cluster.reaches(name, "Succeeded", 60)
        assert (status.restarts, status.attempt) == (0, 0)
        assert status.replica_statuses["worker"].succeeded == 3


async def _some_pods(cluster: Cluster, name: str, count: int) -> None:
    async def there() -> bool:
        return len(await cluster.pods(name)) >= count

    await eventually(there, 60, f"{count} pods")
