"""Bringing a server back to what a cluster starts with, between two tests or two runs of one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from urllib.parse import parse_qsl

import msgspec
from tests.support.kube_apiserver import LEFT_BEHIND
from tests.support.waiting import eventually

from lockstep.api.claims import RESOURCE_CLAIMS
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound

_NOW = json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}).encode()
_LEFT = [
    (path, dict(parse_qsl(query)))
    for path, _, query in (whole.partition("?") for whole in LEFT_BEHIND)
]


async def empty(client: Client, *, nodes: bool = True) -> None:
    """Delete what is left behind, pods at once, and return when it is gone.

    Where *nodes* are kept, so are their leases.
    """
    left = [one for one in _LEFT if nodes or not one[0].endswith(("/nodes", "/leases"))]
    for path, selector in left:
        await client.request("DELETE", path, params=selector, body=_NOW)
    await _free_claims(client)
    # Others may tell events at any time.
    lasting = [one for one in left if not one[0].endswith("/events")]
    await asyncio.gather(*(eventually(lambda one=one: _gone(client, *one)) for one in lasting))


async def _free_claims(client: Client) -> None:
    """Take the finalizers off claims, as kube-controller-manager does once no pod uses them."""
    for claim in (await client.list(RESOURCE_CLAIMS)).items:
        meta = claim.metadata
        with contextlib.suppress(NotFound):
            free = {"metadata": {"finalizers": None}}
            await client.patch(RESOURCE_CLAIMS, meta.name, free, meta.namespace)


async def _gone(client: Client, path: str, selector: dict[str, str]) -> bool:
    items = msgspec.json.decode(await client.get_raw(path, selector))["items"]
    # A real cluster makes this one again.
    return all(item["metadata"]["name"] == "kube-root-ca.crt" for item in items)
