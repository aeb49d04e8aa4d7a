"""Writing statuses: only what differs, and only onto the version that was decided on."""

from __future__ import annotations

from typing import Any, TypeVar

from lockstep.api.merge import difference
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, Wire, to_builtins
from lockstep.kube.client import Client, Patch

T = TypeVar("T", bound=Wire)


async def write_status(
    client: Client, resource: Resource[T], obj: Any, status: Any, **always: Any
) -> T | None:
    """Give *obj* the new *status*; return the object as it is then, None if nothing differs.

    *always* are fields that go along with any change, even where they have their default.

    Raises:
        Conflict: when the object is no longer the version *obj*: decide again.
        NotFound: when it is gone.
        ApiError: when the server cannot be used now.
    """
    patch = difference(to_builtins(obj.status), to_builtins(status))
    if not patch:
        return None
    meta: ObjectMeta = obj.metadata
    guard = {"resourceVersion": meta.resource_version}
    return await _send(client, resource, meta, {"metadata": guard, "status": {**patch, **always}})


async def patch_status(
    client: Client,
    resource: Resource[T],
    meta: ObjectMeta,
    status: Json,
    *,
    seen: bool = False,
    how: Patch = Patch.MERGE,
) -> T:
    """Merge *status* into the status of the object with the uid of *meta*, at any version.

    This is for a writer that alone knows the state and writes faster than its cache follows. With
    *seen* the object must still be the version that *meta* tells. A strategic patch leaves the
    conditions of others on Kubernetes' own kinds.

    Raises:
        Conflict: when the name belongs to another object by now.
        ApiError: as ``write_status``.
    """
    guard = {"resourceVersion": meta.resource_version} if seen else _uid(meta)
    return await _send(client, resource, meta, {"metadata": guard, "status": status}, how)


async def put_condition(
    client: Client, resource: Resource[T], meta: ObjectMeta, *conditions: Json
) -> T:
    """Add or replace *conditions* by their types on one of Kubernetes' own kinds.

    Other writers' conditions stay.

    Raises:
        Conflict: when the name belongs to another object by now.
        ApiError: as ``write_status``.
    """
    body = {"metadata": _uid(meta), "status": {"conditions": [*conditions]}}
    return await _send(client, resource, meta, body, Patch.STRATEGIC)


def _uid(meta: ObjectMeta) -> Json:
    """Return what makes the server refuse another object of the name; nothing without a uid."""
    return {"uid": meta.uid} if meta.uid else {}


async def _send(
    client: Client,
    resource: Resource[T],
    meta: ObjectMeta,
    body: Json,
    how: Patch = Patch.MERGE,
) -> T:
    space = meta.namespace or None
    return await client.patch(resource, meta.name, body, space, how=how, subresource="status")
