"""Binding a pod to a node."""

from __future__ import annotations

from lockstep.api.wire import Json, encode
from lockstep.apiserver import status
from lockstep.apiserver.bodies import read_object
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.schema.causes import Cause, not_supported, required
from lockstep.apiserver.store import Key
from lockstep.http import Response


async def bind(objects: Objects, call: Call) -> Response:
    """Set the node of a pod, once; annotations of the binding land on the pod.

    Raises:
        StatusError: when the pod is bound, being deleted or not the one that is meant.
    """
    binding = read_object(call.request, "Binding")
    target = binding.get("target") or {}
    meta = binding.get("metadata") or {}
    if meta.get("name") and meta["name"] != call.route.name:
        raise status.bad_request("name in URL does not match name in Binding object")
    if causes := _causes(target):
        raise status.failed(", ".join(map(str, causes)))
    now = timestamp(objects.clock())
    options = call.options()

    def mutate(pod: Json) -> Json:
        return bound(pod, target["name"], meta, now)

    await objects.change(
        call.served,
        call.route.namespace,
        call.route.name,
        mutate,
        options,
        subresource="binding",
    )
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return Response(201, encode({**success, "code": 201}))


def _causes(target: Json) -> list[Cause]:
    if target.get("kind") not in (None, "", "Node"):
        return [not_supported("target.kind", target["kind"], ("Node", "<empty>"))]
    return [] if target.get("name") else [required("target.name")]


def bound(pod: Json, node: str, binding: Json, now: str) -> Json:
    """Return *pod* bound to *node*.

    Raises:
        StatusError: when that may not be.
    """
    meta = pod["metadata"]
    name = meta["name"]
    if (uid := binding.get("uid")) and uid != meta["uid"]:
        key = Key("pods", meta["namespace"], name)
        raise status.uid_conflict("", "pods", key, uid, meta["uid"])
    if meta.get("deletionTimestamp"):
        raise status.conflict(
            "", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host"
        )
    spec = pod["spec"]
    if spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        raise status.conflict("", "pods/binding", name, why)
    if spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
        raise status.conflict("", "pods/binding", name, why)
    spec["nodeName"] = node
    if annotations := binding.get("annotations"):
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    if labels := binding.get("labels"):
        meta["labels"] = {**labels, **(meta.get("labels") or {})}
    state = pod.setdefault("status", {})
    kept = [c for c in state.get("conditions") or () if c.get("type") != "PodScheduled"]
    scheduled: Json = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    state["conditions"] = [*kept, scheduled]
    return pod
