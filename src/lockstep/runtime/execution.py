"""Actions become calls of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import groupby
from typing import Any, Final

from lockstep.api.meta import controller_of
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import AlreadyExists, ApiError
from lockstep.runtime.actions import Action, Apply, Change, Create, Delete
from lockstep.runtime.refusals import Answer, Refusal, answer

AT_ONCE: Final = 32
"""Requests for one object under way at the same time."""

Execute = Callable[[Action], Awaitable[Refusal | None]]


async def execute(
    client: Client, action: Action, namespace: str = "", *, owner: str = ""
) -> Refusal | None:
    """Do *action*, by default in *namespace*; return the refusal if the server refuses it.

    With *owner*, the uid of the object that the controller works on, an object to be created that
    exists already must be controlled by that: another's is a refusal.

    Raises:
        ApiError: when the view was stale or the server cannot be used now; reconcile again.
    """
    space = action.namespace or namespace or None
    try:
        await _call(client, action, space)
    except ApiError as error:
        match answer(action, error):
            case Answer.DONE:
                if not isinstance(error, AlreadyExists):
                    return None
                if owner and not await _owns(client, action, space, owner):
                    return Refusal(action, error)
                if isinstance(action, Create) and action.overwrite:
                    await client.patch(action.resource, action.name, action.body, space)
                return None
            case Answer.REFUSED:
                return Refusal(action, error)
            case _:
                raise
    return None


async def execute_all(actions: Iterable[Action], do: Execute) -> tuple[Refusal, ...]:
    """*do* each of *actions* in their order; return the refusals of the group at which it stopped.

    Neighbours of one type and kind are a group. The rest of a group is sent side by side, but
    only after its first action was accepted: a server that refuses one would refuse all.

    Raises:
        ApiError: when the view was stale or the server cannot be used now; reconcile again.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(action: Action) -> Refusal | None:
        async with gate:
            return await do(action)

    for _, group in groupby(actions, key=lambda a: (type(a), a.resource.kind)):
        first, *rest = group
        if refusal := await one(first):
            return (refusal,)
        answers = await asyncio.gather(*(one(a) for a in rest), return_exceptions=True)
        for found in answers:
            if isinstance(found, BaseException):
                raise found
        if refused := tuple(found for found in answers if isinstance(found, Refusal)):
            return refused
    return ()


async def _owns(client: Client, action: Action, namespace: str | None, owner: str) -> bool:
    """Say whether the object that exists already is controlled by the one with the uid *owner*."""
    there = await client.get(action.resource, action.name, namespace)
    found = controller_of(there.metadata)
    return found is not None and found.uid == owner


async def _call(client: Client, action: Action, namespace: str | None) -> None:
    match action:
        case Create(resource=res, body=body):
            if action.fill:
                body = {**body, "stringData": {**body.get("stringData", {}), **action.fill()}}
            await client.create(res, body, namespace)
        case Change(resource=res, name=name, patch=patch):
            if action.version:
                meta = {**patch.get("metadata", {}), "resourceVersion": action.version}
                patch = {**patch, "metadata": meta}
            await client.patch(res, name, patch, namespace, subresource=action.subresource)
        case Apply(resource=res, name=name, body=body):
            how: dict[str, Any] = {"how": Patch.APPLY, "field_manager": action.manager}
            await client.patch(res, name, body, namespace, force=True, **how)
        case Delete(resource=res, name=name):
            await client.delete(
                res,
                name,
                namespace,
                uid=action.uid,
                grace_seconds=action.grace,
                propagation="Background",
            )
