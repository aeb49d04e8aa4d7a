"""The downward API: fields of a pod and resources of its containers as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lockstep.api import quantity
from lockstep.nodes.process.spec import Container, FieldRef, Pod, ResourceFieldRef

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod runs: what the downward API tells beyond the pod's own object."""

    node: str
    host_ip: str
    pod_ip: str
    allocatable: Mapping[str, str]
    """What stands for a limit that a container does not set."""


class UnknownField(ValueError):
    """A reference to a field that the downward API does not offer."""


def field_value(ref: FieldRef, pod: Pod, place: Place) -> str:
    """Return the text of the field that *ref* names.

    Raises:
        UnknownField: when the downward API has no such field.
    """
    path = ref.field_path
    meta = pod.metadata
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        chosen = meta.labels if subscript[1] == "labels" else meta.annotations
        return chosen.get(subscript[2], "")
    simple = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "spec.nodeName": place.node,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": place.host_ip,
        "status.hostIPs": place.host_ip,
        "status.podIP": place.pod_ip,
        "status.podIPs": place.pod_ip,
    }
    if path in simple:
        return simple[path]
    if path in ("metadata.labels", "metadata.annotations"):
        chosen = meta.labels if path.endswith("labels") else meta.annotations
        return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(chosen.items()))
    raise UnknownField(f"unsupported fieldPath: {path}")


def _quoted(text: str) -> str:
    """Return *text* in double quotes, escaped as Go's ``%q`` does for what labels can hold."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'


def resource_value(ref: ResourceFieldRef, pod: Pod, own: Container | None, place: Place) -> str:
    """Return the request or limit that *ref* names, in units of its divisor, rounded up.

    Raises:
        UnknownField: when there is no such container or resource.
    """
    container = own
    if ref.container_name:
        everyone = [*pod.spec.containers, *pod.spec.init_containers]
        container = next((one for one in everyone if one.name == ref.container_name), None)
    if container is None:
        raise UnknownField(f"no container {ref.container_name!r} for resource {ref.resource}")
    kind, _, name = ref.resource.partition(".")
    if kind not in ("limits", "requests") or not name:
        raise UnknownField(f"unsupported resource: {ref.resource}")
    limit = container.resources.limits.get(name, place.allocatable.get(name, "0"))
    amount = limit
    if kind == "requests":
        amount = container.resources.requests.get(name, container.resources.limits.get(name, "0"))
    divisor = quantity.parse(str(ref.divisor)) or 1
    return str(math.ceil(quantity.parse(str(amount)) / divisor))
