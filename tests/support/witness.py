"""What a server holds, told where a test waited for something in vain."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from lockstep.api import names
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError

_LOCKSTEP = f"/apis/{names.GROUP}/v1alpha1"
_LOOKED_AT = (
    "/api/v1/nodes",
    "/api/v1/pods",
    f"{_LOCKSTEP}/gangs",
    f"{_LOCKSTEP}/trainingjobs",
    f"{_LOCKSTEP}/queues",
    f"{_LOCKSTEP}/topologies",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/coordination.k8s.io/v1/leases",
    "/api/v1/events",
)
_LEFT_OUT = ("managedFields", "ownerReferences", "nodeInfo", "containers", "images", "ports")
_MOST = 60
"""Objects of a kind that are told, the latest ones."""


@contextlib.asynccontextmanager
async def witnessed(client: Client) -> AsyncIterator[None]:
    """Add to a failed assertion what the server held at that moment."""
    try:
        yield
    except AssertionError as error:
        try:
            error.add_note(await held(client))
        except ApiError as unreadable:  # what was waited for in vain must not be hidden by it
            error.add_note(f"what the server held cannot be read: {unreadable}")
        raise


def told(error: AssertionError) -> str:
    """Return the words of a failed assertion, and all that was added to them."""
    return "\n".join((str(error), *getattr(error, "__notes__", ())))


async def held(client: Client) -> str:
    """Return every object that scheduling looks at or writes, a line each."""
    lines: list[str] = []
    for path in _LOOKED_AT:
        items = json.loads(await client.get_raw(path))["items"]
        lines.append(f"{path}: {len(items)}")
        lines += (f"  {json.dumps(_short(item))}" for item in items[-_MOST:])
    return "\n".join(lines)


def _short(value: Any) -> Any:
    """Return a part of an object without what says nothing here, or is empty."""
    if isinstance(value, list):
        return [_short(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _short(one) for key, one in value.items() if key not in _LEFT_OUT}
    return {key: one for key, one in kept.items() if one not in ({}, [], "", None)}
