"""The scale subresource: how many replicas an object of any kind has."""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep.api.meta import LabelSelector
from lockstep.api.selectors import from_selector
from lockstep.api.wire import Json, convert, encode
from lockstep.apiserver import status
from lockstep.apiserver.bodies import read_object
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.patching import mutation
from lockstep.apiserver.handlers.write import check_name
from lockstep.apiserver.objects import Mutate, Objects
from lockstep.apiserver.patch import builtin
from lockstep.apiserver.schema.causes import invalid
from lockstep.apiserver.store import Key
from lockstep.http import Response

_decode = msgspec.json.Decoder().decode
_COMPONENT = "io.k8s.api.autoscaling.v1.Scale"
_BUILTIN = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}


def get(objects: Objects, call: Call) -> Response:
    """Answer with the scale of an object.

    Raises:
        StatusError: when there is no such object.
    """
    served, route = call.served, call.route
    record = objects.store.get(Key(served.storage, route.namespace, route.name))
    if record is None:
        raise status.not_found(served.kind.group, served.kind.plural, route.name)
    return Response(body=encode(scale_of(served, served.tree(record))))


async def change(objects: Objects, call: Call) -> Response:
    """Replace or patch the scale of an object.

    Raises:
        StatusError: when there is no such object or the number is wrong.
    """
    served, route = call.served, call.route
    if call.verb == "update":
        sent = read_object(call.request, "Scale")
        check_name((sent.get("metadata") or {}).get("name"), route.name)
        edit: Mutate = lambda _: sent  # noqa: E731
    else:
        edit = mutation(call, builtin(_COMPONENT))

    def mutate(live: Json) -> Json:
        return scaled(served, live, edit(scale_of(served, live)))

    result = await objects.change(
        served, route.namespace, route.name, mutate, call.options(), subresource="scale"
    )
    return Response(body=encode(scale_of(served, _decode(result.data))))


def scale_of(served: Served, obj: Json) -> Json:
    """Return the scale of *obj*."""
    paths = _paths(served)
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    found: Json = {"replicas": _at(obj, paths["statusReplicasPath"]) or 0}
    if selector := _selector(_at(obj, paths.get("labelSelectorPath") or "")):
        found["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": _at(obj, paths["specReplicasPath"]) or 0},
        "status": found,
    }


def scaled(served: Served, obj: Json, scale: Json) -> Json:
    """Return *obj* with the number of replicas that *scale* states.

    Raises:
        StatusError: when it is no number, or negative.
    """
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        wrong = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise status.invalid("autoscaling", "Scale", obj["metadata"]["name"], [wrong])
    sent = scale.get("metadata") or {}
    for name in ("uid", "resourceVersion"):
        if sent.get(name):
            obj["metadata"][name] = sent[name]
    *parents, last = _paths(served)["specReplicasPath"].strip(".").split(".")
    holder = obj
    for name in parents:
        holder = holder.setdefault(name, {})
    holder[last] = replicas
    return obj


def _paths(served: Served) -> dict[str, str]:
    if not served.custom:
        return _BUILTIN
    declared: dict[str, str] = served.version["subresources"]["scale"]
    return declared


def _at(obj: Json, path: str) -> Any:
    value: Any = obj if path else None
    for name in path.strip(".").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _selector(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    if "matchLabels" in value or "matchExpressions" in value:
        return str(from_selector(convert(value, LabelSelector)))
    return ",".join(f"{key}={value[key]}" for key in sorted(value))
