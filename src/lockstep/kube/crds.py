"""Making sure that the server knows Lockstep's kinds before they are followed."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from lockstep.api import crd
from lockstep.api.core import CRDS, AnyObject
from lockstep.api.names import VERSION
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, Forbidden, NotFound

log = logging.getLogger(__name__)

_POLL: Final = 1.0


async def ensure_crds(client: Client) -> None:
    """Create the CRDs that are missing, and return once the server serves all of them.

    Where that is not permitted, say once what has to be applied, and wait for it.

    Raises:
        ApiError: when the server cannot be reached.
    """
    for manifest in crd.manifests():
        name = manifest["metadata"]["name"]
        told = False
        while not await _served(client, name):
            try:
                await client.create(CRDS, manifest)
            except AlreadyExists:
                pass
            except Forbidden:
                if not told:
                    log.warning(
                        "the kind %s is missing and may not be created by this identity; apply it: "
                        "lockstep manifests crds | kubectl apply -f -",
                        name,
                    )
                told = True
            await asyncio.sleep(_POLL if told else _POLL / 10)


async def _served(client: Client, name: str) -> bool:
    plural, _, group = name.partition(".")
    try:
        found = await client.get(CRDS, name)
    except NotFound:
        return False
    except Forbidden:
        return await _answers(client, group, plural)
    return _established(found)


async def _answers(client: Client, group: str, plural: str) -> bool:
    """Say whether the kind can be listed, for identities that may not read CRDs."""
    try:
        await client.get_raw(f"/apis/{group}/{VERSION}/{plural}", {"limit": "1"})
    except NotFound:
        return False
    return True


def _established(found: AnyObject) -> bool:
    return any(
        c.get("type") == "Established" and c.get("status") == "True"
        for c in found.status.get("conditions") or []
    )
