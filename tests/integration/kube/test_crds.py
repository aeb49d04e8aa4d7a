"""Definitions of our kinds: created where missing, upgraded where older, otherwise left alone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.apiserver import ApiServer

from lockstep.api.core import CRDS, AnyObject
from lockstep.api.names import SCHEMA_ANNOTATION
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds

NAME = "queues.lockstep.dev"


async def made_by(client: Client, mark: str | None) -> AnyObject:
    """Let the definition be somebody else's: without its columns, and with their mark."""
    await ensure_crds(client)
    spec = (await client.get(CRDS, NAME)).spec
    versions: list[dict[str, Any]] = [{**spec["versions"][0], "additionalPrinterColumns": []}]
    meta = {"annotations": {SCHEMA_ANNOTATION: mark}}
    return await client.patch(CRDS, NAME, {"metadata": meta, "spec": {"versions": versions}})


def columns(definition: AnyObject) -> int:
    return len(definition.spec["versions"][0].get("additionalPrinterColumns") or ())


@pytest.mark.parametrize("mark", [None, "0.0.9+aaaaaaaa", "0.2.0+aaaaaaaa"])
async def test_what_an_older_lockstep_made_is_upgraded(
    any_shared_server: ApiServer, mark: str | None
) -> None:
    async with any_shared_server.client() as client:
        older = await made_by(client, mark)
        await ensure_crds(client)
        found = await client.get(CRDS, NAME)
        assert columns(found) > columns(older) == 0
        await ensure_crds(client)
        again = await client.get(CRDS, NAME)
        assert again.metadata.resource_version == found.metadata.resource_version


async def test_what_a_newer_lockstep_made_stays(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        newer = await made_by(client, "999.0.0+aaaaaaaa")
        await ensure_crds(client)
        found = await client.get(CRDS, NAME)
        assert found.metadata.resource_version == newer.metadata.resource_version
        await made_by(client, None)


async def test_parts_of_an_embedded_server_upgrade_while_others_continue(
    shared_server: ApiServer,
) -> None:
    users = shared_server.data / "kubeconfigs"
    async with shared_server.client() as client:
        for part, upgrades in (("process-node", False), ("scheduler", True)):
            await made_by(client, None)
            async with Client(ClusterConfig.load(users / f"{part}.kubeconfig")) as other:
                await ensure_crds(other)
            assert (columns(await client.get(CRDS, NAME)) > 0) is upgrades
