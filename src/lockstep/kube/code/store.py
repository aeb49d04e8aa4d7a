"""The place of code in the cluster: ConfigMaps of the job's namespace, which go with its jobs.

A user who may read the namespace's ConfigMaps may read its code; users of other namespaces may not.
A part that is there is not sent again. Each job that uses a part is among its owners, so the
garbage collector removes a part with the last of them.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstep.api import timestamp
from lockstep.api.code import CODE_LABEL, KEY
from lockstep.api.core import CONFIG_MAPS
from lockstep.api.meta import ObjectMeta
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json
from lockstep.kube.client import Client, Patch
from lockstep.kube.code.parts import compressed
from lockstep.kube.errors import AlreadyExists, Conflict, NotFound

UNUSED: Final = 3600.0
"""Seconds after which a part that no job owns is removed."""
_AT_ONCE: Final = 4
_METADATA: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)


class _Known(msgspec.Struct):
    metadata: ObjectMeta


class _All(msgspec.Struct):
    items: list[_Known] | None = None


async def upload(client: Client, namespace: str, parts: Mapping[str, bytes]) -> int:
    """Send the *parts* that the namespace lacks, by name; return their bytes as sent.

    Parts that no job has taken for an hour are removed.

    Raises:
        ApiError: when the server refuses.
    """
    path, params = CONFIG_MAPS.path(namespace), {"labelSelector": CODE_LABEL}
    answer = await client.request("GET", path, params=params, accept=_METADATA)
    there = [one.metadata for one in msgspec.json.decode(answer, type=_All).items or ()]
    missing = parts.keys() - {one.name for one in there}
    sizes = await _few(_create(client, namespace, name, parts[name]) for name in missing)
    old = unused((one for one in there if one.name not in parts), time.time())
    await _few(_remove(client, namespace, one) for one in old)
    return sum(sizes)


async def adopt(
    client: Client, namespace: str, parts: Mapping[str, bytes], jobs: Iterable[ObjectMeta]
) -> None:
    """Let *jobs* own the *parts*; one that was removed meanwhile is sent again.

    Raises:
        ApiError: when the server refuses.
    """
    kind = {"apiVersion": TRAINING_JOBS.api_version, "kind": TRAINING_JOBS.kind}
    owners = [{**kind, "name": job.name, "uid": job.uid} for job in jobs]
    await _few(_own(client, namespace, name, data, owners) for name, data in parts.items())


async def _own(
    client: Client, namespace: str, name: str, data: bytes, owners: Sequence[Json]
) -> None:
    patch = {"metadata": {"ownerReferences": owners}}
    try:
        await client.patch(CONFIG_MAPS, name, patch, namespace, how=Patch.STRATEGIC)
    except NotFound:
        await _create(client, namespace, name, data, owners)


async def _create(
    client: Client, namespace: str, name: str, data: bytes, owners: Sequence[Json] = ()
) -> int:
    packed = await asyncio.to_thread(compressed, data)
    about = {"name": name, "labels": {CODE_LABEL: "true"}, "ownerReferences": list(owners)}
    content = {KEY: base64.b64encode(packed).decode()}
    body = {"metadata": about, "immutable": True, "binaryData": content}
    try:
        await client.create(CONFIG_MAPS, body, namespace)
    except AlreadyExists:
        if owners:
            await _own(client, namespace, name, data, owners)
    return len(packed)


def unused(there: Iterable[ObjectMeta], now: float) -> list[ObjectMeta]:
    """Return the parts that no job owns and that are older than ``UNUSED``."""
    free = (one for one in there if not one.owner_references and one.creation_timestamp)
    return [one for one in free if timestamp.parse(one.creation_timestamp or "") < now - UNUSED]


async def _remove(client: Client, namespace: str, meta: ObjectMeta) -> None:
    # As it was seen: a job that has taken it since keeps it.
    seen = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": seen}
    path = CONFIG_MAPS.path(namespace, meta.name)
    try:
        await client.request("DELETE", path, body=msgspec.json.encode(body))
    except (NotFound, Conflict):
        return


async def _few(work: Iterable[Awaitable[Any]]) -> list[Any]:
    """Do *work*, a few at a time."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(task: Awaitable[Any]) -> Any:
        async with gate:
            return await task

    return await asyncio.gather(*(one(task) for task in work))
