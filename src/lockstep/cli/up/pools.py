"""The simulated node pools that ``lockstep up`` was asked for, as objects."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from lockstep.api.node_pool import NODE_POOLS, NodePool
from lockstep.api.wire import to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound

MAKER_LABEL = "app.kubernetes.io/managed-by"
MAKER = "lockstep-up"


async def set_pools(client: Client, pools: Collection[NodePool]) -> None:
    """Make or change the pools that are asked for; delete those that an earlier run made."""
    wanted = {pool.metadata.name for pool in pools}
    listing = await client.list(NODE_POOLS, label_selector=f"{MAKER_LABEL}={MAKER}")
    for pool in listing.items:
        if pool.metadata.name not in wanted:
            with suppress(NotFound):
                await client.delete(NODE_POOLS, pool.metadata.name)
    for pool in pools:
        tree = to_builtins(pool)
        tree["metadata"]["labels"] = {MAKER_LABEL: MAKER}
        try:
            await client.create(NODE_POOLS, tree)
        except AlreadyExists:
            known = await client.get(NODE_POOLS, pool.metadata.name)
            version = known.metadata.resource_version
            body = {"metadata": {"resourceVersion": version}, "spec": _over(known, tree["spec"])}
            await client.patch(NODE_POOLS, pool.metadata.name, body)


def _over(known: NodePool, spec: dict[str, object]) -> dict[str, object]:
    """Return the merge patch that leaves nothing of the earlier spec."""
    return {**dict.fromkeys(to_builtins(known.spec)), **spec}
