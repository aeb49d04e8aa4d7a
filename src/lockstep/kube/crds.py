"""Waiting until the server serves Lockstep's kinds; creating and upgrading them where allowed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from typing import Any, Final

from lockstep.api import crd
from lockstep.api.core import CRDS
from lockstep.api.names import API_VERSION, SCHEMA_ANNOTATION
from lockstep.api.presentation import PRESENTATIONS
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound

log = logging.getLogger(__name__)

_POLL: Final = 0.1
_POLL_TOLD: Final = 1.0


async def ensure_crds(client: Client) -> None:
    """Create the CRDs that are missing, and return once the server serves all of them.

    Which are served is asked of discovery, which everybody may read. Where creating is not
    permitted, say once what has to be applied, and wait for it. A definition that an older Lockstep
    made is brought up to date, also where that is permitted; one of a newer Lockstep stays.

    Raises:
        ApiError: when the server cannot be reached.
    """
    told = False
    while missing := await _missing(client):
        try:
            for plural in missing:
                await _create(client, plural)
        except Forbidden:
            if not told:
                log.warning(
                    "the server does not serve %s, which this identity may not create; apply them: "
                    "lockstep manifests crds | kubectl apply --server-side -f -",
                    ", ".join(missing),
                )
            told = True
        await asyncio.sleep(_POLL_TOLD if told else _POLL)
    for manifest in crd.manifests():
        await _upgrade(client, manifest)


async def ensure_foreign(client: Client, manifests: Iterable[dict[str, Any]]) -> None:
    """Create those of the CRDs *manifests* that the server does not have; touch no others.

    A kind of another system that is there already stays as its owner installed it.

    Raises:
        ApiError: when the server cannot be reached.
    """
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        try:
            await client.create(CRDS, manifest)
        except AlreadyExists:
            log.debug("the definition of %s is there already", name)
        except Forbidden as error:
            log.warning("the definition of %s is missing and may not be created: %s", name, error)


async def _upgrade(client: Client, manifest: dict[str, Any]) -> None:
    name, marks = manifest["metadata"]["name"], manifest["metadata"]["annotations"]
    try:
        there = await client.get(CRDS, name)
        found = there.metadata.annotations.get(SCHEMA_ANNOTATION, "")
        if not crd.outdated(found, marks[SCHEMA_ANNOTATION]):
            return
        # The version makes the server refuse it when another client was quicker.
        meta = {"annotations": marks, "resourceVersion": there.metadata.resource_version}
        await client.patch(CRDS, name, {"metadata": meta, "spec": manifest["spec"]})
    except Forbidden as error:
        # The owner that installed it upgrades it.
        log.warning("the definition of %s may be older than this program: %s", name, error)
    except (Conflict, NotFound):
        log.debug("the definition of %s was changed by another client meanwhile", name)
    else:
        log.info(
            "the definition of %s was made by %s: upgraded", name, found or "an older Lockstep"
        )


async def _create(client: Client, plural: str) -> None:
    for manifest in crd.manifests():
        if manifest["spec"]["names"]["plural"] == plural:
            try:
                await client.create(CRDS, manifest)
            except AlreadyExists:
                return


async def _missing(client: Client) -> list[str]:
    try:
        found = json.loads(await client.get_raw(f"/apis/{API_VERSION}"))
    except NotFound:
        found = {"resources": []}
    served = {resource["name"] for resource in found["resources"]}
    return [shown.resource.plural for shown in PRESENTATIONS if shown.resource.plural not in served]
