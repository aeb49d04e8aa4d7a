"""The controller of datasets, ended at each of its calls: bound, warmed, then all gone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api.core import CLAIMS, NODES, VOLUMES
from lockstep.api.dataset_cache import CAN_CACHE_LABEL, DATASET_CACHES
from lockstep.compat import dialects
from lockstep.compat.fluid.objects import DATA_LOADS, DATASETS, RUNTIME_KINDS
from lockstep.data.main import add_data
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import NotFound
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
SPACE, NAME, NODE = "default", "files", "data-node"
CACHE = f"{NAME}.{NODE}"
ALL = {"files": 2, "bytes": 10, "cachedFiles": 2, "cachedBytes": 10}


async def data(client: Client, ready: Callable[[str], None]) -> None:
    """Control datasets, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_data(manager)
    await manager.run(ready)


async def told(stage: Stage) -> None:
    """A dataset is bound and warmed, and then it is deleted; the node's cache is played here."""
    client = stage.client
    await ensure_foreign(client, dialects.manifests(["fluid"]))
    # What the run before has left; its dataset is gone already.
    for resource in (DATA_LOADS, RUNTIME_KINDS[0]):
        with contextlib.suppress(NotFound):
            await client.delete(resource, NAME, SPACE)
    await client.create(NODES, {"metadata": {"name": NODE, "labels": {CAN_CACHE_LABEL: "true"}}})
    mount = {"mountPoint": "https://example.org/files", "name": NAME}
    await client.create(DATASETS, {"metadata": {"name": NAME}, "spec": {"mounts": [mount]}}, SPACE)
    spec = {"replicas": 1}
    await client.create(RUNTIME_KINDS[0], {"metadata": {"name": NAME}, "spec": spec}, SPACE)
    stage.start()
    await _play(stage, listed="v1", files=2, bytes=10)
    await stage.until(lambda: _phase(client, DATASETS, "Bound"), "the dataset is bound")
    load = {"metadata": {"name": NAME}, "spec": {"dataset": {"name": NAME}}}
    await client.create(DATA_LOADS, load, SPACE)
    await stage.until(lambda: _targeted(client), "all files are asked for")
    await _play(stage, phase="Ready", version="v1", targets={"/": ALL}, **ALL)
    await stage.until(lambda: _phase(client, DATA_LOADS, "Complete"), "it is warm")
    stage.seen["bound"] = await _bound(client)
    await client.delete(DATASETS, NAME, SPACE)
    for resource, name, space in (
        (DATASETS, NAME, SPACE),
        (CLAIMS, NAME, SPACE),
        (VOLUMES, f"{SPACE}-{NAME}", None),
        (DATASET_CACHES, CACHE, SPACE),
    ):
        await stage.until(lambda o=(resource, name, space): _gone(client, *o), f"{name} is gone")


async def _play(stage: Stage, **status: Any) -> None:
    async def asked() -> bool:
        return not await _gone(stage.client, DATASET_CACHES, CACHE, SPACE)

    await stage.until(asked, "the node is asked to keep the dataset")
    body = {"status": status}
    await stage.client.patch(DATASET_CACHES, CACHE, body, SPACE, subresource="status")


async def _phase(client: Client, resource: Any, wanted: str) -> bool:
    return bool((await client.get(resource, NAME, SPACE)).status.phase == wanted)


async def _targeted(client: Client) -> bool:
    spec = (await client.get(DATASET_CACHES, CACHE, SPACE)).spec
    return (spec.version, spec.targets) == ("v1", ["/"])


async def _bound(client: Client) -> list[Any]:
    claim, volume = (
        await client.get(CLAIMS, NAME, SPACE),
        await client.get(VOLUMES, f"{SPACE}-{NAME}"),
    )
    return [claim.spec.get("volumeName"), volume.spec["claimRef"]["name"]]


async def _gone(client: Client, resource: Any, name: str, space: str | None) -> bool:
    try:
        await client.get(resource, name, space)
    except NotFound:
        return True
    return False


async def outcome(stage: Stage) -> object:
    """Return what the dataset was and what is left of it."""
    client = stage.client
    left = {
        resource.plural: [one.metadata.name for one in (await client.list(resource)).items]
        for resource in (DATASETS, CLAIMS, VOLUMES, DATASET_CACHES)
    }
    load = (await client.get(DATA_LOADS, NAME, SPACE)).status
    return stage.seen["bound"], left, load.phase, load.infos["progress"]


def story() -> Scenario:
    return Scenario(in_process(data), told, outcome)


async def test_a_dataset_is_whole_wherever_its_controller_ends(furnished_arena: Arena) -> None:
    await furnished_arena.endures(story())


@pytest.mark.real_sample()
async def test_a_dataset_is_whole_in_any_weather(furnished_arena: Arena) -> None:
    await furnished_arena.weathers(story(), range(furnished_arena.seeds))
