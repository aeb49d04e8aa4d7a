"""Eviction: a deletion that keeps to the disruption budgets."""

from __future__ import annotations

from functools import partial

from lockstep.api.wire import Json, encode
from lockstep.apiserver import status
from lockstep.apiserver.bodies import read_object
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.disruption import needs_no_budget, selector_of, verdict
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.delete import options_of
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.store import Record
from lockstep.http import Response

_BUDGETS = "poddisruptionbudgets.policy"
_RETRY_SECONDS = 10


async def evict(objects: Objects, call: Call) -> Response:
    """Delete a pod unless a budget forbids it.

    Raises:
        StatusError: 429 when a budget forbids it now; 404 when there is no such pod.
    """
    eviction = read_object(call.request, "Eviction")
    served, route = call.served, call.route
    record = objects.find(served, route.namespace, route.name)
    pod = record.object()
    if not needs_no_budget(pod):
        _require_budget(objects, record, pod)
    options: Json = eviction.get("deleteOptions") or {}
    deletion: Deletion = options_of(options)
    dry_run = bool(options.get("dryRun") or call.request.query.get("dryRun"))
    if not dry_run:
        mark = partial(_disrupted, now=timestamp(objects.clock()))
        await objects.change(
            served, route.namespace, route.name, mark, call.options(), subresource="eviction"
        )
    await objects.delete(served, route.namespace, route.name, deletion, dry_run=dry_run)
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return Response(201, encode({**success, "code": 201}))


def _disrupted(pod: Json, *, now: str) -> Json:
    """Say on the pod that its end is not its own doing, as Kubernetes does."""
    state = pod.setdefault("status", {})
    kept = [c for c in state.get("conditions") or () if c.get("type") != "DisruptionTarget"]
    said: Json = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    state["conditions"] = [*kept, said]
    return pod


def _require_budget(objects: Objects, record: Record, pod: Json) -> None:
    namespace = record.key.namespace
    budgets = [
        (budget, selector)
        for found in objects.store.objects(_BUDGETS, namespace)
        if (selector := selector_of(budget := found.object())).matches(record.meta.labels)
    ]
    if len(budgets) > 1:
        raise status.internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource "
            "does not support."
        )
    for budget, selector in budgets:
        newest = map(
            objects.store.newest, (r.key for r in objects.store.objects("pods", namespace))
        )
        protected = [r.object() for r in newest if r and selector.matches(r.meta.labels)]
        said = verdict(budget, pod, protected)
        if not said.allowed:
            raise _too_many(budget["metadata"]["name"], said.desired, said.healthy)


def _too_many(budget: str, desired: int, healthy: int) -> status.StatusError:
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {budget} needs {desired} healthy pods "
        f"and has {healthy} currently",
    }
    return status.too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        _RETRY_SECONDS,
        causes=[cause],
    )
