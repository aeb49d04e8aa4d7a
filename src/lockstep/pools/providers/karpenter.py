"""Karpenter: a NodeClaim for each node.

Karpenter passes a claim's labels and taints on to its node, deletes a claim for which the cloud has
no machine, and removes the node with its claim (karpenter.sh/v1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockstep.api import names
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.node_pool import PoolRequest
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, Wire, to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.pools.core.pool import Pool
from lockstep.pools.providers.contract import OUT_OF_STOCK, Presence, ProviderError, said, taints

MISSING = ("NodeClaims", "install Karpenter")


class NodeClaimStatus(Wire, frozen=True):
    """How far a claim is."""

    conditions: list[Condition] = []


class NodeClaim(Wire, frozen=True):
    """A claim, as far as pools read it."""

    metadata: ObjectMeta
    status: NodeClaimStatus = NodeClaimStatus()


NODE_CLAIMS = Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", False, NodeClaim)


class Karpenter:
    """The provider of nodes that Karpenter makes."""

    removes_nodes = True

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, pool: Pool, request: PoolRequest, slots: Sequence[int]) -> None:
        """Create the claims; if one is refused, those before it are taken back."""
        made: dict[int, str] = {}
        for slot in slots:
            try:
                await self._client.create(NODE_CLAIMS, node_claim(pool, request, slot))
            except AlreadyExists:
                continue
            except ApiError as error:
                await self.delete(pool, made)
                raise ProviderError(said(pool, error, *MISSING)) from error
            made[slot] = ""

    async def delete(self, pool: Pool, slots: Mapping[int, str]) -> None:
        """Delete the claims; Karpenter drains and removes the nodes."""
        for slot in slots:
            try:
                await self._client.delete(NODE_CLAIMS, pool.node_name(slot))
            except NotFound:
                continue
            except ApiError as error:
                raise ProviderError(said(pool, error, *MISSING)) from error

    async def present(self, pool: Pool) -> Presence:
        """Return the slots that have a claim which is not being deleted."""
        selector = f"{names.POOL_LABEL}={pool.name}"
        try:
            listing = await self._client.list(NODE_CLAIMS, label_selector=selector)
        except ApiError as error:
            raise ProviderError(said(pool, error, *MISSING)) from error
        there = {
            int(slot): claim
            for claim in listing.items
            if (slot := claim.metadata.labels.get(names.POOL_SLOT_LABEL, "")).isdecimal()
        }
        lost = f"{OUT_OF_STOCK}: Karpenter has withdrawn the claim, as it does without machines"
        gone = (s for s in pool.coming if s not in there)
        return Presence(frozenset(there), dict.fromkeys(gone, lost))


def node_claim(pool: Pool, request: PoolRequest, slot: int) -> Json:
    """Return the claim for the node in a slot."""
    provider, spec = pool.object.spec.provider.karpenter, pool.object.spec
    if provider is None:
        raise ProviderError("spec.provider.karpenter is not set", "ProviderMissing")
    kind = "spot" if spec.spot else "on-demand"
    capacity = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]}
    stated = to_builtins(provider.requirements)
    if all(one["key"] != capacity["key"] for one in stated):
        stated.append(capacity)
    asked = {name: amount for name, amount in spec.template.capacity.items() if name != names.PODS}
    return {
        "metadata": {"name": pool.node_name(slot), "labels": pool.labels(slot)},
        "spec": {
            "nodeClassRef": to_builtins(provider.node_class_ref),
            "requirements": stated,
            "taints": taints(spec.template.taints, request),
            "resources": {"requests": asked},
        },
    }
