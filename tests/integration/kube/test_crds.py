"""Definitions of our kinds: created where missing, upgraded where older, otherwise left alone."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kubectl import KUBECTLS, Kubectl, need_kubectl
from tests.support.waiting import eventually_sync

from lockstep.api.core import CRDS, AnyObject
from lockstep.api.names import SCHEMA_ANNOTATION
from lockstep.compat import dialects
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds, ensure_foreign

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


@pytest.mark.parametrize("which", KUBECTLS)
async def test_kubectl_finds_our_jobs_beside_another_kind_of_their_name(
    any_shared_server: ApiServer, tmp_path: Path, which: str
) -> None:
    kubectl = Kubectl(need_kubectl(which), any_shared_server.kubeconfig, tmp_path)
    async with any_shared_server.client() as client:
        await ensure_crds(client)
        await ensure_foreign(client, dialects.manifests(["etoperator"]))

    def finds_ours(word: str) -> bool:
        # What kubectl learned of the groups before is not asked for again in six hours.
        anew = f"--cache-dir={tempfile.mkdtemp(dir=tmp_path)}"
        asked = kubectl.run("get", word, "nothing", anew)
        return 'trainingjobs.lockstep.dev "nothing" not found' in asked.stderr

    for word in ("tj", "tjob", "trainingjobs.lockstep.dev"):
        await asyncio.to_thread(eventually_sync, partial(finds_ours, word), 60, f"{word} is ours")
