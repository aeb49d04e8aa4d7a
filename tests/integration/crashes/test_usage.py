"""The recorder of usage, ended at each of its calls: no second is lost, and none is doubled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api import timestamp
from lockstep.api.core import NODES, PODS
from lockstep.api.gang import GANGS
from lockstep.insight.history.store import Store
from lockstep.insight.main import add_history
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
SPACE, GANG, NODE = "default", "train", "n0"
BASE = 1_900_000_000
SPEC: Json = {
    "nodeName": NODE,
    "terminationGracePeriodSeconds": 0,
    "containers": [
        {"name": "m", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "2"}}},
    ],
}


def at(seconds: int) -> str:
    return timestamp.show(BASE + seconds)


def condition(seconds: int) -> Json:
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(seconds)}


class Story:
    """Two pods of a gang run; one fails and is made again; then the gang is deleted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0

    @property
    def path(self) -> Path:
        return self.folder / f"{self.runs}" / "usage.db"

    async def record(self, client: Client, ready: Callable[[str], None]) -> None:
        manager = Manager(client, name="controllers", leader_elect=False)
        add_history(manager, self.path)
        await manager.run(ready)

    async def told(self, stage: Stage) -> None:
        self.runs += 1
        client = stage.client
        await client.create(NODES, {"metadata": {"name": NODE}})
        capacity = {"status": {"capacity": {"nvidia.com/gpu": "8"}}}
        await client.patch(NODES, NODE, capacity, subresource="status")
        spec = {"minMember": 2, "queue": "research"}
        await client.create(GANGS, {"metadata": {"name": GANG}, "spec": spec}, SPACE)
        stage.start()
        await self._pod(client, "a", "0,1", 0)
        await self._pod(client, "b", "2,3", 0)
        await self._ran(client, "a", 10, None)
        await self._ran(client, "b", 12, 40)
        await self._known(stage, 10)
        await client.delete(PODS, "b", SPACE)
        await self._pod(client, "b", "4,5", 60)
        await self._ran(client, "b", 65, 100)
        await self._ran(client, "a", 10, 101)
        await stage.until(lambda: self._held(client), "the gang is held for its record")
        await client.delete(GANGS, GANG, SPACE)
        await stage.until(lambda: self._gone(client), "the gang is let go")

    async def _pod(self, client: Client, name: str, gpus: str, bound: int) -> None:
        meta: Json = {
            "name": name,
            "labels": {"lockstep.dev/gang": GANG},
            "annotations": {"lockstep.dev/gpus": gpus},
        }
        await client.create(PODS, {"metadata": meta, "spec": SPEC}, SPACE)
        status = {"status": {"phase": "Pending", "conditions": [condition(bound)]}}
        await client.patch(PODS, name, status, SPACE, subresource="status")

    async def _ran(self, client: Client, name: str, begun: int, end: int | None) -> None:
        state: Json = {"running": {"startedAt": at(begun)}}
        if end is not None:
            times = {"startedAt": at(begun), "finishedAt": at(end)}
            state = {"terminated": {"exitCode": 1, **times}}
        one = {"name": "m", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
        status: Json = {"phase": "Failed" if end else "Running"}
        status["containerStatuses"] = [{**one, "state": state}]
        await client.patch(PODS, name, {"status": status}, SPACE, subresource="status")

    async def _known(self, stage: Stage, begun: int) -> None:
        """Wait until both pods are on record: what was never seen cannot be."""

        async def look() -> bool:
            return len({c[0] for c in self._rows() if c[2] == "running"}) == 2

        await stage.until(look, "both pods are on record")

    async def _held(self, client: Client) -> bool:
        gang = await client.get(GANGS, GANG, SPACE)
        return bool(gang.metadata.finalizers)

    async def _gone(self, client: Client) -> bool:
        try:
            await client.get(GANGS, GANG, SPACE)
        except NotFound:
            return True
        return False

    def _rows(self) -> list[tuple[Any, ...]]:
        store = Store(self.path)
        found = [
            (c.pod, c.gpu, c.purpose, c.queue, c.start - BASE, c.end and c.end - BASE, c.guessed)
            for c in store.claims(0, 2 * BASE)
        ]
        store.close()
        return sorted(found)

    async def outcome(self, stage: Stage) -> object:
        store = Store(self.path)
        nodes = [(n.name, n.gpus, n.end) for n in store.nodes(0, 2 * BASE)]
        store.close()
        return self._rows(), nodes


def story(folder: Path) -> Scenario:
    played = Story(folder)
    return Scenario(in_process(played.record), played.told, played.outcome)


async def test_no_second_is_lost_wherever_the_recorder_ends(arena: Arena, tmp_path: Path) -> None:
    await arena.endures(story(tmp_path / "records"))


@pytest.mark.real_sample()
async def test_no_second_is_lost_in_any_weather(arena: Arena, tmp_path: Path) -> None:
    await arena.weathers(story(tmp_path / "records"), range(arena.seeds))
