"""The controller that the contributing guide shows, ended at each of its calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.page_code import module_of

from lockstep.api.core import CONFIG_MAPS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import ApiError, NotFound
from lockstep.runtime.manager import Manager

PAGE = module_of("contributing/add-a-controller.md", "greeting_of_the_page")
NAME, SPACE = "hello", "default"
CRD: dict[str, Any] = {
    "metadata": {"name": "greetings.example.dev"},
    "spec": {
        "group": "example.dev",
        "scope": "Namespaced",
        "names": {"plural": "greetings", "singular": "greeting", "kind": "Greeting"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


async def greetings(client: Client, ready: Callable[[str], None]) -> None:
    """Control greetings, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    PAGE.add_greetings(manager)
    await manager.run(ready)


async def changed(stage: Stage) -> None:
    """A greeting comes, its text changes, and its ConfigMap is spoilt by hand."""
    await ensure_foreign(stage.client, [CRD])
    await stage.until(lambda: _served(stage), "the kind is served")
    stage.start()
    body = {"metadata": {"name": NAME}, "spec": {"text": "hello"}}
    await stage.client.create(PAGE.GREETINGS, body, SPACE)
    await _says(stage, "hello")
    await stage.client.patch(PAGE.GREETINGS, NAME, {"spec": {"text": "good day"}}, SPACE)
    await _says(stage, "good day")
    await stage.client.patch(CONFIG_MAPS, NAME, {"data": {"text": "spoilt"}}, SPACE)
    await _says(stage, "good day")


async def _served(stage: Stage) -> bool:
    with contextlib.suppress(ApiError):
        await stage.client.list(PAGE.GREETINGS)
        return True
    return False


async def _says(stage: Stage, text: str) -> None:
    async def look() -> bool:
        greeting = await stage.client.get(PAGE.GREETINGS, NAME, SPACE)
        with contextlib.suppress(NotFound):
            there = await stage.client.get(CONFIG_MAPS, NAME, SPACE)
            told = (greeting.status.get("phase"), greeting.status.get("text"))
            return there.data == {"text": text} and told == ("Ready", text)
        return False

    await stage.until(look, text)


async def outcome(stage: Stage) -> object:
    """Return the ConfigMap and the status, and take the greeting away for the next run."""
    greeting = await stage.client.get(PAGE.GREETINGS, NAME, SPACE)
    there = await stage.client.get(CONFIG_MAPS, NAME, SPACE)
    return greeting.status, there.data, [one.name for one in there.metadata.owner_references]


async def story(stage: Stage) -> None:
    """Play on a server from which the greeting of the run before is gone."""
    with contextlib.suppress(ApiError):
        await stage.client.delete(PAGE.GREETINGS, NAME, SPACE)
    with contextlib.suppress(NotFound):
        await stage.client.delete(CONFIG_MAPS, NAME, SPACE)
    await changed(stage)


async def test_a_controller_of_a_page_survives_any_call(arena: Arena) -> None:
    await arena.endures(Scenario(in_process(greetings), story, outcome))
