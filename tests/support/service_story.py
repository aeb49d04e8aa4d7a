"""The story of an inference service whose version changes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from lockstep.api.core import NAMESPACES
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.serving import ROUTERS
from lockstep.api.timestamp import show
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.runtime.manager import Manager
from lockstep.serve.main import add_serving

Json = dict[str, Any]
SPACE, NAME = "default", "asked"


async def serving(client: Client, ready: Callable[[str], None]) -> None:
    """Control inference services, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_serving(manager)
    await manager.run(ready)


def spec(word: str, percent: int) -> Json:
    container = {"name": "kserve-container", "image": "none", "command": ["serve", word]}
    predictor = {"containers": [container], "minReplicas": 1, "canaryTrafficPercent": percent}
    return {"spec": {"predictor": predictor}}


async def router(client: Client) -> None:
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
    with contextlib.suppress(NotFound):
        await client.delete(ROUTERS, "played", SYSTEM_NAMESPACE)
    address = {"url": "http://127.0.0.81", "address": "127.0.0.81"}
    body = {"metadata": {"name": "played"}, "spec": address}
    await client.create(ROUTERS, body, SYSTEM_NAMESPACE)
    status = {"status": {"renewedAt": show(time.time() + 3600)}}
    await client.patch(ROUTERS, "played", status, SYSTEM_NAMESPACE, subresource="status")
