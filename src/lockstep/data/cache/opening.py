"""Sources of a dataset, opened with what its Secrets hold."""

from __future__ import annotations

import asyncio
import base64
from typing import Protocol
from urllib.parse import urlsplit

from lockstep.api.core import SECRETS
from lockstep.api.dataset_cache import OTHER_SCHEMES, CacheMount, DatasetCache, SecretKey
from lockstep.data.cache.directories import Directories
from lockstep.data.cache.other_sources import OtherSource
from lockstep.data.cache.sources import Source, SourceFailed
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound


class Node(Protocol):
    """Where sources are opened."""

    client: Client
    directories: Directories


AnySource = Source | OtherSource
"""What lists a mount's objects and reads them."""


async def sources(node: Node, cache: DatasetCache) -> list[AnySource]:
    """Return the sources of a dataset's mounts.

    Raises:
        SourceFailed: when one cannot be opened, or a Secret that it needs is missing.
    """
    found: list[AnySource] = []
    for mount in cache.spec.mounts:
        held = await _held(node.client, cache.metadata.namespace, mount)
        if urlsplit(mount.uri).scheme in OTHER_SCHEMES:
            found.append(await asyncio.to_thread(OtherSource, mount, held))
        else:
            found.append(await asyncio.to_thread(Source, mount, held, node.directories))
    return found


async def _held(client: Client, namespace: str, mount: CacheMount) -> dict[str, str]:
    found = {}
    for name, ref in mount.secrets.items():
        try:
            found[name] = await secret(client, namespace, ref, mount.uri)
        except SourceFailed:
            if not ref.optional:
                raise
    return found


async def secret(client: Client, namespace: str, ref: SecretKey, user: str) -> str:
    """Return one key of a Secret that *user* needs.

    Raises:
        SourceFailed: when it is missing.
    """
    where = f"Secret {namespace}/{ref.name}"
    try:
        held = await client.get(SECRETS, ref.name, namespace)
    except NotFound as error:
        text = f"{where} is missing: {user} needs its key {ref.key}"
        raise SourceFailed("SecretMissing", text) from error
    if ref.key not in held.data:
        raise SourceFailed("SecretMissing", f"{where} has no key {ref.key}")
    return base64.b64decode(held.data[ref.key]).decode(errors="replace")
