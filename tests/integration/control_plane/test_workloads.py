"""Deployments, StatefulSets, DaemonSets and CronJobs go as under kube-controller-manager."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_programs import controller_manager
from tests.support.waiting import eventually

from lockstep.api.core import CONTROLLER_REVISIONS, NODES, PODS, AnyObject, Pod
from lockstep.api.meta import controller_of
from lockstep.api.resource import Resource
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import ApiError
from lockstep.runtime.manager import Manager
from lockstep.workloads.core.plan import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from lockstep.workloads.main import add_workloads

pytestmark = pytest.mark.xdist_group("lifecycle")
PATIENCE = 60.0
Json = dict[str, Any]
SETS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
_HASH = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5,10}(?![a-z0-9])")


def workload(resource: Resource[AnyObject], name: str, **spec: Any) -> Json:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "one"}]},
    }
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"metadata": {"name": name}, "spec": body}


@contextlib.asynccontextmanager
async def ours(server: ApiServer) -> AsyncIterator[Client]:
    async with server.client() as client:
        manager = Manager(client, name="controllers", leader_elect=False)
        add_workloads(manager)
        task = asyncio.create_task(manager.run(lambda _: None))
        try:
            yield client
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def theirs(server: ApiServer) -> AsyncIterator[Client]:
    kinds = ("deployment", "replicaset", "statefulset", "daemonset", "cronjob", "serviceaccount")
    running = controller_manager(server, [f"{kind}-controller" for kind in kinds]).start()
    try:
        async with server.client() as client:
            yield client
    finally:
        running.kill()


async def _kubelet(client: Client) -> None:
    """Stand in for kubelets: every pod is ready as soon as it is seen."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    while True:
        for pod in (await client.list(PODS, "default")).items:
            if pod.status.phase == "Pending" and pod.spec.containers[0].image != "bad":
                with contextlib.suppress(ApiError):
                    await client.patch(
                        PODS,
                        pod.metadata.name,
                        {"status": ready},
                        "default",
                        how=Patch.STRATEGIC,
                        subresource="status",
                    )
        await asyncio.sleep(0.05)


async def play(client: Client) -> list[Json]:
    """Let workloads come, change, grow, fail and go back; return how each stage ends."""
    for name in ("n1", "n2"):
        await client.create(NODES, {"metadata": {"name": name}})
    kubelet = asyncio.create_task(_kubelet(client))
    await client.create(DEPLOYMENTS, workload(DEPLOYMENTS, "web", replicas=3), "default")
    numbered = workload(STATEFUL_SETS, "db", replicas=2, serviceName="db")
    await client.create(STATEFUL_SETS, numbered, "default")
    await client.create(DAEMON_SETS, workload(DAEMON_SETS, "agent"), "default")
    stages = [await _settled(client, 3, 2)]
    await _image(client, "two")
    stages.append(await _settled(client, 3, 2))
    for res, name in ((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")):
        await client.patch(res, name, {"spec": {"replicas": 4}}, "default")
    stages.append(await _settled(client, 4, 4))
    await client.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}}, "default")
    await _image(client, "one")
    stages.append(await _settled(client, 4, 1))
    await client.patch(DEPLOYMENTS, "web", _with("bad"), "default")

    async def stuck() -> bool:
        found = await client.get(DEPLOYMENTS, "web", "default")
        status = found.status
        # One of four may be missing, one may be too many: both stay as they are.
        return (
            status.get("observedGeneration") == found.metadata.generation
            and status.get("updatedReplicas") == 2
            and status.get("availableReplicas") == 3
            and status.get("replicas") == 5
        )

    await eventually(stuck, PATIENCE, "the bad template is stuck")
    stages.append(await _seen(client))
    kubelet.cancel()
    return stages


def _with(image: str) -> Json:
    containers = [{"name": "main", "image": image}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


async def _image(client: Client, image: str) -> None:
    for res, name in ((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db"), (DAEMON_SETS, "agent")):
        await client.patch(res, name, _with(image), "default")


async def _settled(client: Client, web: int, db: int) -> Json:
    async def over() -> bool:
        deployment = await client.get(DEPLOYMENTS, "web", "default")
        numbered = await client.get(STATEFUL_SETS, "db", "default")
        daemons = await client.get(DAEMON_SETS, "agent", "default")
        status = numbered.status
        progress = deployment.status.get("conditions", ())
        return (
            all(
                one.status.get("observedGeneration") == one.metadata.generation
                for one in (deployment, numbered, daemons)
            )
            and _counts(deployment, "replicas", "updatedReplicas", "availableReplicas") == {web}
            and any(one["reason"] == "NewReplicaSetAvailable" for one in progress)
            and _counts(numbered, "replicas", "updatedReplicas", "availableReplicas") == {db}
            and status["currentRevision"] == status["updateRevision"]
            and _counts(daemons, "updatedNumberScheduled", "numberAvailable") == {2}
            and not deployment.status.get("terminatingReplicas")
        )

    await eventually(over, PATIENCE, "every workload is as it says")
    return await _seen(client)


def _counts(obj: AnyObject, *names: str) -> set[int]:
    return {obj.status.get(name, 0) for name in names}


async def _seen(client: Client) -> Json:
    found: Json = {}
    for res in (*SETS, REPLICA_SETS):
        for one in (await client.list(res, "default")).items:
            meta = one.metadata
            key = f"{res.kind} {_HASH.sub('-HASH', meta.name)} {meta.annotations.get(REVISION)}"
            found[key] = {
                # In how many steps a ReplicaSet got its size is a matter of time.
                "status": _plain(one.status, counted=res is not REPLICA_SETS),
                "replicas": one.spec.get("replicas"),
                "annotations": sorted(meta.annotations.items()),
            }
    pods = (await client.list(PODS, "default")).items
    found["pods"] = sorted(_pod(one) for one in pods if one.metadata.deletion_timestamp is None)
    revisions = (await client.list(CONTROLLER_REVISIONS, "default")).items
    found["revisions"] = sorted((r.revision, _HASH.sub("", r.metadata.name)) for r in revisions)
    return found


REVISION = "deployment.kubernetes.io/revision"


def _plain(status: Json, *, counted: bool) -> Json:
    """Return a status without times, without hashes, and its conditions by type."""
    kept: Json = {}
    for key, value in status.items():
        if key == "observedGeneration" and not counted:
            continue
        kept[key] = _HASH.sub("-HASH", value) if isinstance(value, str) else value
    kept["conditions"] = {
        one["type"]: (one["status"], one["reason"], _HASH.sub("-HASH", one["message"]))
        for one in status.get("conditions", ())
    }
    return kept


def _pod(pod: Pod) -> tuple[Any, ...]:
    meta = pod.metadata
    owner = controller_of(meta)
    return (
        _HASH.sub("-HASH", meta.name),
        sorted((key, _HASH.sub("-HASH", f"-{value}")) for key, value in meta.labels.items()),
        (owner.kind, owner.block_owner_deletion) if owner else None,
        pod.spec.containers[0].image,
        sorted((one.key, one.effect) for one in pod.spec.tolerations),
        pod.spec.hostname,
        pod.spec.subdomain,
    )


async def test_workloads_go_as_under_kube_controller_manager(
    server: ApiServer, real_server: KubeApiServer
) -> None:
    real_server.empty()
    async with ours(server) as client:
        mine = await play(client)
    async with theirs(real_server) as client:
        reference = await play(client)
    real_server.empty()
    for number, (own, wanted) in enumerate(zip(mine, reference, strict=True)):
        for key in sorted({*own, *wanted}):
            assert own.get(key) == wanted.get(key), (number, key)


async def test_a_cron_job_makes_up_only_for_its_newest_run(server: ApiServer) -> None:
    container = {"name": "main", "image": "x"}
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}
    async with ours(server) as client:
        missed = {"status": {"lastScheduleTime": "2020-06-01T00:00:00Z"}}
        await client.create(
            CRON_JOBS,
            {"metadata": {"name": "yearly"}, "spec": {**spec, "suspend": True}},
            "default",
        )
        await client.patch(CRON_JOBS, "yearly", missed, "default", subresource="status")
        await client.patch(CRON_JOBS, "yearly", {"spec": {"suspend": False}}, "default")

        async def made() -> bool:
            return len((await client.list(JOBS, "default")).items) == 1

        await eventually(made, PATIENCE, "one job")

        async def told() -> bool:
            status = (await client.get(CRON_JOBS, "yearly", "default")).status
            return (
                len(status.get("active", ())) == 1
                and status["lastScheduleTime"] > "2025-12"
                and status["lastScheduleTime"].endswith("-01-01T00:00:00Z")
            )

        await eventually(told, PATIENCE, "the status names it")


async def test_an_orphan_is_adopted_and_a_different_one_released(server: ApiServer) -> None:
    async with ours(server) as client:
        # Should the set not have seen it in time, the pod made in its place is what goes.
        costly = {"controller.kubernetes.io/pod-deletion-cost": "100"}
        lonely = {
            "metadata": {"name": "lonely", "labels": {"app": "web"}, "annotations": costly},
            "spec": {"containers": [{"name": "main", "image": "one"}]},
        }
        await client.create(PODS, lonely, "default")
        await client.create(REPLICA_SETS, workload(REPLICA_SETS, "web", replicas=2), "default")

        async def owned(count: int, has_lonely: bool) -> bool:
            pods = (await client.list(PODS, "default")).items
            own = [one.metadata.name for one in pods if controller_of(one.metadata)]
            return len(own) == count and ("lonely" in own) is has_lonely

        await eventually(lambda: owned(2, True), PATIENCE, "the orphan is one of two")
        await client.patch(PODS, "lonely", {"metadata": {"labels": {"app": "else"}}}, "default")
        await eventually(lambda: owned(2, False), PATIENCE, "another is in its place")
