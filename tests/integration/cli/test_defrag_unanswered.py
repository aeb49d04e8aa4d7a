"""``defrag --yes`` where no scheduler runs: told, given up in time, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess

from msgspec.structs import replace
from tests.support.apiserver import ApiServer
from tests.support.control_plane import LOCKSTEP
from tests.support.drawn import draw_gang, node
from tests.support.jobs import job as drawn_job
from tests.support.jobs import role
from tests.support.waiting import stretched

from lockstep.api.core import NODES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.meta import OwnerReference
from lockstep.api.names import (
    DEFRAGMENT_ANNOTATION,
    GANG_LABEL,
    GPUS_ANNOTATION,
    SCHEDULER_NAME,
)
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import to_builtins
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds


async def furnish(client: Client) -> None:
    """Two nodes, each half taken by a gang that may move, and a gang that wants a whole one."""
    for name in ("a", "b"):
        await client.create(NODES, node(name))
    for text, on in (("x: 1x4", "a"), ("y: 1x4", "b"), ("w: 1x8", "")):
        drawn = draw_gang(text, checkpoint={"interval": "1s"})
        name = drawn.gang.metadata.name
        job = drawn_job(role(), name=name)
        job = await client.create(
            TRAINING_JOBS, {"metadata": {"name": name}, "spec": to_builtins(job.spec)}, "default"
        )
        owner = OwnerReference(job.api_version, job.kind, name, job.metadata.uid, controller=True)
        meta = replace(drawn.gang.metadata, owner_references=[owner])
        status = {"placedAt": "2026-01-01T00:00:00Z", "phase": "Running"} if on else {}
        body = to_builtins(replace(drawn.gang, metadata=meta))
        await client.create(GANGS, body, "default")
        await client.patch(GANGS, name, {"status": status}, "default", subresource="status")
        gpus = {"nvidia.com/gpu": 8 if name == "w" else 4}
        container = {"name": "main", "image": "none", "resources": {"limits": gpus}}
        meta = {
            "name": f"{name}-0",
            "labels": {GANG_LABEL: name},
            "annotations": {GPUS_ANNOTATION: "0,1,2,3"} if on else {},
        }
        spec = {"schedulerName": SCHEDULER_NAME, "nodeName": on, "containers": [container]}
        await client.create(PODS, {"metadata": meta, "spec": spec}, "default")


async def test_no_scheduler_answers(server: ApiServer) -> None:
    async with server.client() as client:
        await ensure_crds(client)
        await furnish(client)
        done = await asyncio.to_thread(
            subprocess.run,
            [*LOCKSTEP, "defrag", "w", "--yes", "--answer-within", "1s"],
            env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=stretched(60),
            check=False,
        )
        assert done.returncode == 1, done.stdout
        assert "w would start if 1 job moved" in done.stdout
        assert "no scheduler has answered for 1s; waiting 1s at most" in done.stderr
        assert "the request was taken back and nothing was moved" in done.stderr
        gang = await client.get(GANGS, "w", "default")
        assert DEFRAGMENT_ANNOTATION not in gang.metadata.annotations
