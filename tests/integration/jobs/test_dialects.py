"""Jobs of other systems really run, are told in their own words, and are left alone if not ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.process_node import needs_mounts, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.core import EVENTS, AnyObject
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.compat import dialects
from lockstep.compat.registry import sources
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import NotFound

Json = dict[str, Any]
Submit = Callable[..., Awaitable[None]]
SERVED = {source.kind.kind: source.resource for source in sources()}
COUNT = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
os.write(1, f"rank {dist.get_rank()} of {int(total)}\\n".encode())
dist.destroy_process_group()
"""


@pytest.fixture
async def submit(cluster: Cluster) -> Submit:
    """Create an object of a foreign kind, whose definition Lockstep has installed."""
    server = cluster.node.server
    async with server.client() as admin:
        await ensure_foreign(admin, dialects.manifests(dialects.DIALECTS))

    async def create(kind: str, name: str, spec: Json, **meta: Any) -> None:
        needs_mounts()

        async def made() -> bool:
            try:
                body = {"metadata": {"name": name, "namespace": "default", **meta}, "spec": spec}
                await cluster.client.create(SERVED[kind], body)
            except NotFound:
                return False
            return True

        await eventually(made, 60, f"{kind} to be served")

    return create


async def reaches(cluster: Cluster, kind: str, name: str, condition: str) -> AnyObject:
    """Return the object once the condition is true in its status."""
    res: Resource[AnyObject] = SERVED[kind]
    last: Json = {}

    async def look() -> AnyObject | None:
        nonlocal last
        found = await cluster.client.get(res, name, "default")
        last = found.status
        said = {c["type"]: c["status"] for c in last.get("conditions", [])}
        return found if said.get(condition) == "True" else None

    try:
        return await eventually(look, 200, f"{condition} of {kind} {name}")
    except AssertionError as error:
        raise AssertionError(f"{error}; its status: {last}") from None


def replica(*command: str, replicas: int = 1) -> Json:
    main = {"name": "pytorch", "image": "none", "command": list(command)}
    spec = {"terminationGracePeriodSeconds": 2, "containers": [main]}
    return {"replicas": replicas, "restartPolicy": "Never", "template": {"spec": spec}}


@pytest.mark.torch
async def test_a_pytorchjob_trains(cluster: Cluster, submit: Submit, tmp_path: Path) -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    script = tmp_path / "count.py"
    script.write_text(COUNT)
    python = "python", str(script)
    spec = {"pytorchReplicaSpecs": {"Master": replica(*python), "Worker": replica(*python)}}
    await submit("PyTorchJob", "pt", spec)
    await reaches(cluster, "PyTorchJob", "pt", "Succeeded")

    async def both() -> bool:
        # The master decides; the worker may end a moment later.
        found = await cluster.client.get(SERVED["PyTorchJob"], "pt", "default")
        replicas = found.status["replicaStatuses"]
        return [replicas[t].get("succeeded") for t in ("Master", "Worker")] == [1, 1]

    await eventually(both, 60, "the worker to be counted")
    assert "rank 0 of 2" in read_log(cluster.node, "pt-master-0", "pytorch")
    assert "rank 1 of 2" in read_log(cluster.node, "pt-worker-0", "pytorch")
    pods = (await cluster.pods("pt")).values()
    assert {p.metadata.labels["training.kubeflow.org/replica-type"] for p in pods} == {
        "master",
        "worker",
    }


async def test_a_field_that_cannot_be_honoured_stops_it(cluster: Cluster, submit: Submit) -> None:
    spec = {"pytorchReplicaSpecs": {"Worker": replica("true")}, "nprocPerNode": "many"}
    await submit("PyTorchJob", "odd", spec)
    found = await reaches(cluster, "PyTorchJob", "odd", "Failed")
    assert "spec.nprocPerNode: given 'many'" in found.status["conditions"][-1]["message"]

    async def told() -> bool:
        events = await cluster.client.list(EVENTS, "default")
        return any(e.reason == "Refused" and "nprocPerNode" in e.message for e in events.items)

    await eventually(told, 60, "an event")
    assert await cluster.job("odd") is None


async def test_mended_it_runs_and_deleted_it_is_gone(cluster: Cluster, submit: Submit) -> None:
    spec = {"pytorchReplicaSpecs": {"Worker": replica("sleep", "300")}, "nprocPerNode": "many"}
    await submit("PyTorchJob", "mend", spec)
    await reaches(cluster, "PyTorchJob", "mend", "Failed")
    change = {"spec": {"nprocPerNode": "1"}}
    await cluster.client.patch(SERVED["PyTorchJob"], "mend", change, "default")
    await reaches(cluster, "PyTorchJob", "mend", "Running")
    await cluster.client.delete(SERVED["PyTorchJob"], "mend", "default", propagation="Background")

    async def gone() -> bool:
        return await cluster.job("mend") is None and not await cluster.pods("mend")

    await eventually(gone, 90, "the end of its pods")


async def test_a_name_that_is_taken_is_left_alone(cluster: Cluster, submit: Submit) -> None:
    body = {"name": "worker", "template": replica("sleep", "300")["template"]}
    await cluster.submit("taken", body, suspend=True)
    await submit("PyTorchJob", "taken", {"pytorchReplicaSpecs": {"Worker": replica("true")}})
    found = await reaches(cluster, "PyTorchJob", "taken", "Failed")
    assert "metadata.name: given 'taken'" in found.status["conditions"][-1]["message"]
    job = await cluster.client.get(TRAINING_JOBS, "taken", "default")
    assert not job.metadata.owner_references


async def test_others_objects_are_never_touched(cluster: Cluster, submit: Submit) -> None:
    spec = {"pytorchReplicaSpecs": {"Worker": replica("true")}}
    theirs = {"lockstep.dev/managed": "false"}
    await submit("PyTorchJob", "theirs", spec, annotations=theirs)
    await submit("PyTorchJob", "ours", {**spec, "runPolicy": {"ttlSecondsAfterFinished": 0}})

    async def ended() -> bool:
        there = await cluster.client.list(SERVED["PyTorchJob"], "default")
        return "ours" not in {one.metadata.name for one in there.items}

    await eventually(ended, 90, "the end of ours, after which it is deleted")
    found = await cluster.client.get(SERVED["PyTorchJob"], "theirs", "default")
    assert (found.status, await cluster.job("theirs")) == ({}, None)
