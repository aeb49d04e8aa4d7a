"""The controller of inference services, ended at each of its calls: versions still change."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.service_story import NAME, SPACE, router, serving, spec

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, SERVICES, Pod
from lockstep.api.names import REVISION_LABEL
from lockstep.api.serving import ROUTES
from lockstep.compat import dialects
from lockstep.compat.kserve.objects import INFERENCE_SERVICES
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import NotFound

FIRST, SECOND = (f"{NAME}-predictor-{number:05d}" for number in (1, 2))
KINDS = (PODS, ROUTES, SERVICES, CONTROLLER_REVISIONS)


async def told(stage: Stage) -> None:
    """A service comes, its second version gets a share and then all; router and node are played."""
    client = stage.client
    await ensure_foreign(client, dialects.manifests(["kserve"]))
    await _clear(client)
    await router(client)
    stage.start()
    await client.create(INFERENCE_SERVICES, {"metadata": {"name": NAME}, **spec("a", 20)}, SPACE)
    await _ready(stage, FIRST)
    await stage.until(lambda: _says_ready(client), "the service is ready")
    await client.patch(INFERENCE_SERVICES, NAME, spec("b", 20), SPACE)
    await _ready(stage, SECOND)
    await stage.until(lambda: _shares(client, {FIRST: 80, SECOND: 20}), "the second has its share")
    await client.patch(INFERENCE_SERVICES, NAME, spec("b", 100), SPACE)
    await stage.until(lambda: _shares(client, {SECOND: 100}), "the second version has all")
    await stage.until(lambda: _stand(client, {SECOND}), "the first version's replica is gone")


async def _replicas(client: Client) -> dict[str, Pod]:
    label = f"serving.kserve.io/inferenceservice={NAME}"
    listing = await client.list(PODS, SPACE, label_selector=label)
    return {
        pod.metadata.labels[REVISION_LABEL]: pod
        for pod in listing.items
        if pod.metadata.deletion_timestamp is None
    }


async def _ready(stage: Stage, revision: str) -> None:
    async def there() -> Pod | None:
        return (await _replicas(stage.client)).get(revision)

    pod = await stage.until(there, f"a replica of {revision}")
    ready = {"type": "Ready", "status": "True"}
    status = {"status": {"phase": "Running", "podIP": "127.7.7.7", "conditions": [ready]}}
    await stage.client.patch(PODS, pod.metadata.name, status, SPACE, subresource="status")


async def _shares(client: Client, wanted: dict[str, int]) -> bool:
    try:
        route = await client.get(ROUTES, NAME, SPACE)
    except NotFound:
        return False
    return {one.revision: one.weight for one in route.spec.backends} == wanted


async def _says_ready(client: Client) -> bool:
    status = (await client.get(INFERENCE_SERVICES, NAME, SPACE)).status
    return any((one.type, one.status) == ("Ready", "True") for one in status.conditions)


async def _stand(client: Client, wanted: set[str]) -> bool:
    return set(await _replicas(client)) == wanted


async def outcome(stage: Stage) -> object:
    """Return what stands."""
    client = stage.client
    service = await client.get(INFERENCE_SERVICES, NAME, SPACE)
    told_ = service.status.components["predictor"]
    route = await client.get(ROUTES, NAME, SPACE)
    revisions = (await client.list(CONTROLLER_REVISIONS, SPACE)).items
    return (
        told_.latest_rolledout_revision,
        sorted(await _replicas(client)),
        [(one.revision, one.weight) for one in route.spec.backends],
        sorted((one.metadata.name, one.revision) for one in revisions),
        [(one.type, one.status) for one in service.status.conditions],
    )


async def _clear(client: Client) -> None:
    """Delete what the run before has left; a collector of garbage would take its time."""
    for resource in (INFERENCE_SERVICES, *KINDS):
        # A kind that was installed a moment ago may not be served yet; then nothing is there.
        with contextlib.suppress(NotFound):
            for one in (await client.list(resource, SPACE)).items:
                if one.metadata.name.startswith(NAME):
                    await _delete(client, resource, one.metadata.name)


async def _delete(client: Client, resource: Any, name: str) -> None:
    with contextlib.suppress(NotFound):
        await client.delete(resource, name, SPACE, grace_seconds=0)


def story() -> Scenario:
    return Scenario(in_process(serving), told, outcome)


async def test_versions_change_wherever_the_controller_ends(furnished_arena: Arena) -> None:
    await furnished_arena.endures(story())


@pytest.mark.real_sample()
async def test_versions_change_in_any_weather(furnished_arena: Arena) -> None:
    await furnished_arena.weathers(story(), range(furnished_arena.seeds))
