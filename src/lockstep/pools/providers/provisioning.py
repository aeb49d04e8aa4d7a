"""cluster-autoscaler: a ProvisioningRequest for all nodes of a request, fulfilled whole or failed.

The autoscaler adds nodes of a node group of its own that fit the pods which the request describes;
each of them takes a whole node. They bear the group's labels, so those of the pool's template must
be among them. As they come they are made the pool's (``core/adoption.py``). To give one back it is
let go, cordoned: the autoscaler removes what is empty (autoscaling.x-k8s.io/v1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from lockstep.api import names
from lockstep.api.core import NODES
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.node_pool import PoolRequest, ProvisioningProvider
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, Wire
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.pools.core.adoption import KEEP_ANNOTATION
from lockstep.pools.core.pool import Pool
from lockstep.pools.providers.contract import OUT_OF_STOCK, Presence, ProviderError, said

MISSING = ("ProvisioningRequests", "install their CRD with cluster-autoscaler")
ENDED = ("Failed", "BookingExpired", "CapacityRevoked")
"""Conditions of a request from which nothing comes any more."""


class RequestStatus(Wire, frozen=True):
    """What the autoscaler says of a request."""

    conditions: list[Condition] = []


class ProvisioningRequest(Wire, frozen=True):
    """A request, as far as pools read it."""

    metadata: ObjectMeta
    status: RequestStatus = RequestStatus()


class PodTemplate(Wire, frozen=True):
    """A template of pods; only its name is read."""

    metadata: ObjectMeta


PROVISIONING_REQUESTS = Resource(
    "autoscaling.x-k8s.io",
    "v1",
    "provisioningrequests",
    "ProvisioningRequest",
    True,
    ProvisioningRequest,
)
POD_TEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate", True, PodTemplate)


class Provisioning:
    """The provider of nodes that cluster-autoscaler adds."""

    removes_nodes = True

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, pool: Pool, request: PoolRequest, slots: Sequence[int]) -> None:
        """Create the pod template and the request."""
        space = _provider(pool).namespace
        template = pod_template(pool, request)
        asked = provisioning_request(pool, request, len(slots))
        try:
            with suppress(AlreadyExists):
                await self._client.create(POD_TEMPLATES, template, space)
            with suppress(AlreadyExists):
                await self._client.create(PROVISIONING_REQUESTS, asked, space)
        except ApiError as error:
            raise ProviderError(said(pool, error, *MISSING)) from error

    async def delete(self, pool: Pool, slots: Mapping[int, str]) -> None:
        """Let nodes go, and withdraw requests of which nothing is wanted any more."""
        try:
            for name in slots.values():
                if name:
                    await self._let_go(name)
            await self._withdraw(pool)
        except ApiError as error:
            raise ProviderError(said(pool, error, *MISSING)) from error

    async def _let_go(self, name: str) -> None:
        gone = (names.POOL_LABEL, names.POOL_SLOT_LABEL)
        notes = (KEEP_ANNOTATION, names.IDLE_ANNOTATION, names.LEAVING_ANNOTATION)
        body = {
            "metadata": {"labels": dict.fromkeys(gone), "annotations": dict.fromkeys(notes)},
            "spec": {"unschedulable": True},
        }
        with suppress(NotFound):
            await self._client.patch(NODES, name, body)

    async def _withdraw(self, pool: Pool) -> None:
        space = _provider(pool).namespace
        wanted = {request.id for request in pool.requests}
        listing = await self._client.list(
            PROVISIONING_REQUESTS, space, label_selector=f"{names.POOL_LABEL}={pool.name}"
        )
        for one in listing.items:
            if one.metadata.name in wanted:
                continue
            with suppress(NotFound):
                await self._client.delete(PROVISIONING_REQUESTS, one.metadata.name, space)
            with suppress(NotFound):
                await self._client.delete(POD_TEMPLATES, one.metadata.name, space)

    async def present(self, pool: Pool) -> Presence:
        """Return the slots of nodes and of requests that go on."""
        provider = _provider(pool)
        try:
            listing = await self._client.list(
                PROVISIONING_REQUESTS,
                provider.namespace,
                label_selector=f"{names.POOL_LABEL}={pool.name}",
            )
        except ApiError as error:
            raise ProviderError(said(pool, error, *MISSING)) from error
        known = {one.metadata.name: one for one in listing.items}
        slots, lost = set(pool.names), dict[int, str]()
        for request in pool.requests:
            waiting = [slot for slot in request.slots if slot not in pool.names]
            failed = _failure(known.get(request.id))
            if failed:
                lost |= dict.fromkeys(waiting, failed)
            else:
                slots.update(waiting)
        return Presence(frozenset(slots), lost)


def _failure(request: ProvisioningRequest | None) -> str:
    """Return why a request comes to nothing; empty where it may not."""
    if request is None:
        return "ProviderFailed: the ProvisioningRequest is gone"
    for one in request.status.conditions:
        ended = one.status == "True" and one.type in ENDED
        if ended or (one.type == "CapacityAvailable" and one.status == "False"):
            return f"{OUT_OF_STOCK}: {one.message or one.reason}"
    return ""


def _provider(pool: Pool) -> ProvisioningProvider:
    provider = pool.object.spec.provider.provisioning_request
    if provider is None:
        raise ProviderError("spec.provider.provisioningRequest is not set", "ProviderMissing")
    return provider


def pod_template(pool: Pool, request: PoolRequest) -> Json:
    """Return the template of pods each of which takes a node of the pool."""
    template = pool.object.spec.template
    asked = {name: amount for name, amount in template.capacity.items() if name != names.PODS}
    bears = [
        {"key": one.key, "operator": "Equal", "value": one.value, "effect": one.effect}
        for one in template.taints
    ]
    container = {"name": "node", "image": "none", "resources": {"requests": asked, "limits": asked}}
    return {
        "metadata": {"name": request.id, "labels": {names.POOL_LABEL: pool.name}},
        "template": {
            "metadata": {"labels": {names.POOL_LABEL: pool.name}},
            "spec": {
                "nodeSelector": template.labels,
                "tolerations": bears,
                "containers": [container],
            },
        },
    }


def provisioning_request(pool: Pool, request: PoolRequest, count: int) -> Json:
    """Return the ProvisioningRequest for so many nodes; its id is the request's."""
    provider = _provider(pool)
    spec: Json = {
        "provisioningClassName": provider.class_name,
        "podSets": [{"count": count, "podTemplateRef": {"name": request.id}}],
    }
    if provider.class_name.startswith("best-effort"):
        spec["parameters"] = {"ValidUntilSeconds": str(int(pool.patience))}
    return {
        "metadata": {"name": request.id, "labels": {names.POOL_LABEL: pool.name}},
        "spec": spec,
    }
