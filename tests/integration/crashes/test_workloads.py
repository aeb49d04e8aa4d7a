"""The controllers of workloads, ended at each of their calls: no pod lost, none made twice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api.core import CONTROLLER_REVISIONS, NODES, PODS
from lockstep.api.meta import controller_of
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import AlreadyExists, Conflict, NotFound
from lockstep.runtime.manager import Manager
from lockstep.workloads.core.plan import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from lockstep.workloads.main import add_workloads

Json = dict[str, Any]
OWNERS = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS)


async def workloads(client: Client, ready: Callable[[str], None]) -> None:
    """Serve workloads, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_workloads(manager)
    await manager.run(ready)


def body(name: str, image: str, **spec: Any) -> Json:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


async def _run_pods(stage: Stage) -> None:
    """Stand in for kubelets: every pod is ready as soon as it is seen."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for pod in (await stage.client.list(PODS, "default")).items:
        if pod.status.phase == "Running":
            continue
        try:
            await stage.client.patch(
                PODS,
                pod.metadata.name,
                {"status": ready},
                "default",
                how=Patch.STRATEGIC,
                subresource="status",
            )
        except (NotFound, Conflict):
            continue


async def clear(client: Client) -> None:
    """Delete what the run before has left; a server without garbage collection keeps the rest."""
    for res in (*OWNERS, CONTROLLER_REVISIONS, PODS):
        for one in (await client.list(res, "default")).items:
            with contextlib.suppress(NotFound):
                await client.delete(
                    res, one.metadata.name, "default", propagation="Background", grace_seconds=0
                )


async def story(stage: Stage) -> None:
    """Each sort of workload comes, and a Deployment changes its template and its size."""
    await clear(stage.client)
    with contextlib.suppress(AlreadyExists):
        await stage.client.create(NODES, {"metadata": {"name": "n1"}})
    stage.start()
    await stage.client.create(DEPLOYMENTS, body("web", "one", replicas=2), "default")
    await stage.client.create(STATEFUL_SETS, body("db", "one", replicas=2), "default")
    await stage.client.create(DAEMON_SETS, body("agent", "one"), "default")
    await _settles(stage, 2)
    change = body("web", "two", replicas=3)["spec"]
    await stage.client.patch(DEPLOYMENTS, "web", {"spec": change}, "default")
    await _settles(stage, 3)


async def _settles(stage: Stage, web: int) -> None:
    async def over() -> bool:
        await _run_pods(stage)
        deployment = await stage.client.get(DEPLOYMENTS, "web", "default")
        numbered = await stage.client.get(STATEFUL_SETS, "db", "default")
        daemons = await stage.client.get(DAEMON_SETS, "agent", "default")
        status = deployment.status
        return (
            status.get("observedGeneration") == deployment.metadata.generation
            and {status.get(n) for n in ("replicas", "updatedReplicas", "availableReplicas")}
            == {web}
            and not status.get("terminatingReplicas")
            and numbered.status.get("availableReplicas") == 2
            and daemons.status.get("numberAvailable") == 1
        )

    await stage.until(over, "every workload is as it says")


async def outcome(stage: Stage) -> object:
    """Return how many pods each has, of which image, and what the objects say."""
    pods = (await stage.client.list(PODS, "default")).items
    ends = []
    for pod in pods:
        owner = controller_of(pod.metadata)
        ends.append((owner.kind if owner else "", pod.spec.containers[0].image))
    sizes = [
        (res.kind, one.spec.get("replicas"), one.status.get("replicas"))
        for res in OWNERS
        for one in (await stage.client.list(res, "default")).items
    ]
    return sorted(ends), sorted(sizes, key=str)


def told() -> Scenario:
    return Scenario(in_process(workloads), story, outcome)


async def test_it_ends_the_same_wherever_the_controllers_end(
    server: ApiServer, record_property: Callable[[str, object], None]
) -> None:
    await Arena(server, 5, record_property).endures(told())


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_it_ends_the_same_wherever_at_all_they_end(
    server: ApiServer, record_property: Callable[[str, object], None]
) -> None:
    await Arena(server, None, record_property).endures(told())
