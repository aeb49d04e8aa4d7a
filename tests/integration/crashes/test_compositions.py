"""The controllers of graphs, language models and leaders with workers, ended at each call."""

from __future__ import annotations

import contextlib
from typing import Any

from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.service_story import SPACE, router, serving

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, SERVICES, Pod
from lockstep.api.gang import GANGS
from lockstep.api.serving import ROUTES
from lockstep.compat import dialects
from lockstep.compat.kserve.objects import INFERENCE_GRAPHS, INFERENCE_SERVICES, LLM_SERVICES
from lockstep.compat.leaderworkerset.kinds import LEADER_WORKER_SETS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import NotFound

Json = dict[str, Any]
NAMES = ("chat", "chat-prefill", "pair", "both")
PARENTS = (INFERENCE_GRAPHS, LLM_SERVICES, LEADER_WORKER_SETS)
CHILDREN = (INFERENCE_SERVICES, PODS, GANGS, ROUTES, SERVICES, CONTROLLER_REVISIONS)
BOX = {"name": "main", "image": "none", "command": ["serve"]}


def language(*, prefill: bool) -> Json:
    workload = {"replicas": 1, "template": {"containers": [BOX]}}
    spec = {"model": {"uri": "pvc://models/llama"}, **workload}
    return {"spec": {**spec, "prefill": workload if prefill else None}}


def pair() -> Json:
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [BOX]}}}
    return {"metadata": {"name": "pair"}, "spec": {"replicas": 1, "leaderWorkerTemplate": template}}


def graph() -> Json:
    steps = [{"serviceName": "chat"}, {"serviceName": "pair", "data": "$response"}]
    nodes = {"root": {"routerType": "Sequence", "steps": steps}}
    return {"metadata": {"name": "both"}, "spec": {"nodes": nodes}}


async def told(stage: Stage) -> None:
    """A graph waits for its services, which come of other kinds; one loses its prefill."""
    client = stage.client
    await ensure_foreign(client, dialects.manifests(["kserve", "leaderworkerset"]))
    await _clear(client)
    await router(client)
    stage.start()
    await client.create(INFERENCE_GRAPHS, graph(), SPACE)
    body = {"metadata": {"name": "chat"}, **language(prefill=True)}
    await client.create(LLM_SERVICES, body, SPACE)
    await client.create(LEADER_WORKER_SETS, pair(), SPACE)
    for name in ("chat-predictor-00001-0", "chat-prefill-predictor-00001-0"):
        await _ready(stage, name)
    # A gang's pods run once all of them are there.
    pair_pods = ("pair-predictor-00001-0", "pair-predictor-00001-0-w1")
    for name in pair_pods:
        await _there(stage, name)
    for name in pair_pods:
        await _ready(stage, name)
    await stage.until(lambda: _says(client), "the graph is ready")
    await client.patch(LLM_SERVICES, "chat", language(prefill=False), SPACE)
    await stage.until(lambda: _alone(client), "the service for prefill is gone")


async def _there(stage: Stage, name: str) -> None:
    async def there() -> Pod | None:
        with contextlib.suppress(NotFound):
            return await stage.client.get(PODS, name, SPACE)
        return None

    await stage.until(there, f"the pod {name}")


async def _ready(stage: Stage, name: str) -> None:
    await _there(stage, name)
    ready = {"type": "Ready", "status": "True"}
    status = {"status": {"phase": "Running", "podIP": "127.7.7.7", "conditions": [ready]}}
    await stage.client.patch(PODS, name, status, SPACE, subresource="status")


async def _says(client: Client) -> bool:
    status = (await client.get(INFERENCE_GRAPHS, "both", SPACE)).status
    return any((one.type, one.status) == ("Ready", "True") for one in status.conditions)


async def _alone(client: Client) -> bool:
    found = (await client.list(INFERENCE_SERVICES, SPACE)).items
    return {one.metadata.name for one in found if one.metadata.name in NAMES} == {"chat", "pair"}


async def outcome(stage: Stage) -> object:
    """Return what stands."""
    client = stage.client
    found: dict[str, object] = {}
    for resource in (INFERENCE_SERVICES, GANGS, ROUTES):
        names = [one.metadata.name for one in (await client.list(resource, SPACE)).items]
        mine = [one for one in names if one.startswith(("chat", "pair", "both"))]
        # What belonged to the service for prefill goes once garbage is collected.
        found[resource.kind] = sorted(one for one in mine if not one.startswith("chat-prefill"))
    status = (await client.get(LLM_SERVICES, "chat", SPACE)).status
    leaders = (await client.get(LEADER_WORKER_SETS, "pair", SPACE)).status
    conditions = [*status.get("conditions", []), *leaders.get("conditions", [])]
    return found, [(one["type"], one["status"]) for one in conditions]


async def _clear(client: Client) -> None:
    for resource in (*PARENTS, *CHILDREN):
        with contextlib.suppress(NotFound):
            for one in (await client.list(resource, SPACE)).items:
                if one.metadata.name.startswith(("chat", "pair", "both")):
                    with contextlib.suppress(NotFound):
                        await client.delete(resource, one.metadata.name, SPACE, grace_seconds=0)


async def test_what_becomes_services_comes_wherever_the_controller_ends(
    furnished_arena: Arena,
) -> None:
    await furnished_arena.endures(Scenario(in_process(serving), told, outcome))
    # Others share the server, and their controllers would serve what is left.
    async with furnished_arena.server.client() as client:
        await _clear(client)
