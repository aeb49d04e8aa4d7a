"""Jobs whose pods follow one another end as under kube-controller-manager."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_programs import controller_manager
from tests.support.waiting import eventually

from lockstep.api.core import PODS, Pod
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import ApiError
from lockstep.runtime.manager import Manager
from lockstep.workloads.core.jobs import INDEX
from lockstep.workloads.core.plan import JOBS
from lockstep.workloads.main import add_workloads

pytestmark = pytest.mark.xdist_group("lifecycle")
PATIENCE = 90.0
Json = dict[str, Any]
INDEXED: Json = {"completions": 4, "parallelism": 2, "completionMode": "Indexed"}
RULE: Json = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
SPECS: dict[str, Json] = {
    "turns": {"completions": 5, "parallelism": 2},
    "indexes": INDEXED,
    "some-fail": {**INDEXED, "backoffLimitPerIndex": 0},
    "most-fail": {**INDEXED, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
    "policy": {**INDEXED, "podFailurePolicy": {"rules": [RULE]}},
    "enough": {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}},
    "no-patience": {"completions": 2, "backoffLimit": 0},
    "asleep": {**INDEXED, "backoffLimitPerIndex": 0, "suspend": True},
}


def exit_code(pod: Pod) -> int:
    """Return how the stand-in for a node ends *pod*."""
    job, index = pod.metadata.labels["job-name"], pod.metadata.annotations.get(INDEX)
    if job == "policy":
        return 42
    fails = job in ("most-fail", "no-patience") or (job == "some-fail" and index == "1")
    return int(fails)


async def _node(client: Client) -> None:
    """End each pod as soon as it is seen."""
    while True:
        for pod in (await client.list(PODS, "default")).items:
            if pod.status.phase != "Pending" or "job-name" not in pod.metadata.labels:
                continue
            code = exit_code(pod)
            ended = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
            container = {
                "name": "main",
                "image": "one",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
            status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]}
            with contextlib.suppress(ApiError):
                await client.patch(
                    PODS,
                    pod.metadata.name,
                    {"status": status},
                    "default",
                    how=Patch.STRATEGIC,
                    subresource="status",
                )
        await asyncio.sleep(0.05)


async def play(client: Client) -> dict[str, Json]:
    """Let all Jobs run to their ends; return what their statuses say then."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]}
    for name, spec in SPECS.items():
        body = {"metadata": {"name": name}, "spec": {**spec, "template": {"spec": pod}}}
        await client.create(JOBS, body, "default")
    node = asyncio.create_task(_node(client))
    try:

        async def over() -> bool:
            jobs = (await client.list(JOBS, "default")).items
            ends = [{c["type"] for c in job.status.get("conditions") or ()} for job in jobs]
            return all(one & {"Complete", "Failed", "Suspended"} for one in ends)

        await eventually(over, PATIENCE, "the end of every Job")
    finally:
        node.cancel()
    jobs = (await client.list(JOBS, "default")).items
    return {job.metadata.name: _plain(job.status) for job in jobs}


def _plain(status: Json) -> Json:
    """Return what of a status does not depend on who was faster."""
    conditions = status.get("conditions") or ()
    found: Json = {"conditions": sorted((c["type"], c["status"], c["reason"]) for c in conditions)}
    found["times"] = sorted(key for key in ("startTime", "completionTime") if key in status)
    found["active"] = status.get("active", 0)
    if {"Complete"} & {c["type"] for c in conditions} and "SuccessPolicy" not in str(conditions):
        found |= {key: status.get(key) for key in ("succeeded", "completedIndexes")}
    if "FailedIndexes" in str(conditions):
        names = ("succeeded", "failed", "completedIndexes", "failedIndexes")
        found |= {key: status.get(key) for key in names}
    return found


async def test_jobs_end_as_under_kube_controller_manager(
    server: ApiServer, real_server: KubeApiServer
) -> None:
    real_server.empty()
    async with server.client() as client:
        manager = Manager(client, name="controllers", leader_elect=False)
        add_workloads(manager)
        task = asyncio.create_task(manager.run(lambda _: None))
        try:
            mine = await play(client)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    running = controller_manager(real_server, ["job-controller", "serviceaccount-controller"])
    running.start()
    try:
        async with real_server.client() as client:
            reference = await play(client)
    finally:
        running.kill()
    real_server.empty()
    for name in SPECS:
        assert mine[name] == reference[name], name
