"""Steps of stories about queues: gangs come, are placed, and go."""

from __future__ import annotations

from typing import Any

from tests.support.crashing import Stage
from tests.support.scheduler import pod_body

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import GPU_COMPUTE, GPU_MEMORY, QUEUE_LABEL, RUNTIME_ANNOTATION
from lockstep.api.queue import QUEUES
from lockstep.kube.client import Client


async def end_of(stage: Stage) -> dict[str, Any]:
    """Return who stands, who waits for what, and what each queue has."""
    pods = (await stage.client.list(PODS, "default")).items
    gangs = (await stage.client.list(GANGS)).items
    queues = (await stage.client.list(QUEUES)).items
    audit = stage.audit
    return {
        "pods": {p.metadata.name: bool(p.spec.node_name) for p in pods},
        "gangs": {
            g.metadata.name: (g.status.phase, g.status.reason, g.status.bound) for g in gangs
        },
        "queues": {q.metadata.name: dict(q.status.used) for q in queues},
        "given": dict(+audit.given),
        "ended": dict(+audit.ended),
    }


async def reason(stage: Stage, gang: str, wanted: str) -> None:
    """Wait until a gang says so why it waits."""

    async def look() -> bool:
        return (await stage.client.get(GANGS, gang, "default")).status.reason == wanted

    await stage.until(look, f"{gang}: {wanted}")


async def placed(stage: Stage, *gangs: str) -> None:
    """Wait until it is on record that gangs stand whole."""

    async def look() -> bool:
        found = (await stage.client.list(GANGS)).items
        return all(g.status.phase == "Placed" for g in found if g.metadata.name in gangs)

    await stage.until(look, f"{gangs} are placed")


async def let_go(stage: Stage, *names: str) -> None:
    """End pods, as their users do, and wait until they are gone."""
    for name in names:
        await stage.client.delete(PODS, name, "default", grace_seconds=0)

    async def look() -> bool:
        pods = (await stage.client.list(PODS, "default")).items
        return not {p.metadata.name for p in pods} & set(names)

    await stage.until(look, f"{names} are gone")


async def queued_gang(
    client: Client,
    name: str,
    queue: str | None,
    members: int,
    annotations: dict[str, str] | None = None,
) -> None:
    """Create a gang in a queue, each of its pods with a whole node, and labelled for the audit."""
    meta = {"name": name, "namespace": "default", "annotations": annotations or {}}
    spec = {"minMember": members} | ({"queue": queue} if queue else {})
    await client.create(GANGS, {"metadata": meta, "spec": spec})
    for i in range(members):
        body = pod_body(f"{name}-{i}", gang=name)
        if queue:
            body["metadata"]["labels"][QUEUE_LABEL] = queue
        await client.create(PODS, body)


def share(name: str, compute: int, memory: int, **spec: Any) -> dict[str, Any]:
    """Return a pod that takes so many hundredths and so many GiB of a card."""
    body = pod_body(name, gpus=0, **spec)
    asked = {GPU_COMPUTE: str(compute), GPU_MEMORY: str(1024 * memory)}
    body["spec"]["containers"][0]["resources"]["limits"] = asked
    body["spec"]["terminationGracePeriodSeconds"] = 0
    return body


async def timed(
    client: Client, name: str, members: int, seconds: int | None, queue: str | None = None
) -> None:
    """Create a gang of whole nodes that says how long it runs, where it does."""
    known = {} if seconds is None else {RUNTIME_ANNOTATION: str(seconds)}
    await queued_gang(client, name, queue, members, known)
