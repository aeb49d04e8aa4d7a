"""The page's notice: which parts of an installed Lockstep do not run."""

from __future__ import annotations

import asyncio

from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

from lockstep.api.core import NAMESPACES
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.console.cluster_cache import PARTS, ClusterCache
from lockstep.kube.silent_parts import COMPONENT, DEPLOYMENTS


async def test_a_part_that_stops_is_told_to_the_page(server: ApiServer) -> None:
    labels = {"app.kubernetes.io/name": "lockstep", COMPONENT: "router"}
    body = {
        "metadata": {"name": "lockstep-router", "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "router", "image": "none"}]},
            },
        },
    }
    async with server.client() as client:
        await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await client.create(DEPLOYMENTS, body, SYSTEM_NAMESPACE)
        world, told = ClusterCache(client), list[str]()
        world.listen(lambda kind, _, __: told.append(kind))
        reading = asyncio.create_task(world.ready())
        await eventually(lambda: "no router runs" in world.silent)
        assert PARTS in told
        status = {"status": {"readyReplicas": 1, "replicas": 1}}
        await client.patch(
            DEPLOYMENTS, "lockstep-router", status, SYSTEM_NAMESPACE, subresource="status"
        )
        await eventually(lambda: world.silent == "")
        reading.cancel()
        await world.close()
