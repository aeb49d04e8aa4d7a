"""Which part of an object a write through a subresource, or past it, can reach."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.catalog import Served

Json = dict[str, Any]

# Agents of nodes write labels and annotations together with the status.
_METADATA_WITH_STATUS = frozenset({"nodes", "pods"})
_REACHED = ("labels", "annotations", "finalizers")
_RESIZED = ("resources", "resizePolicy")


def isolate(served: Served, new: Json, old: Json, subresource: str) -> Json:
    """Return *new* with everything put back that the write may not reach."""
    match subresource:
        case "":
            return _past_status(new, old) if served.kind.has_status else new
        case "status":
            return _status(served, new, old)
        case "ephemeralcontainers":
            return _spec_field(new, old, "ephemeralContainers")
        case "resize":
            return _resized(new, old)
        case "finalize":
            return _spec_field(new, old, "finalizers")
        case "approval":
            return _approval(new, old)
    return new


def _past_status(new: Json, old: Json) -> Json:
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)
    return new


def _status(served: Served, new: Json, old: Json) -> Json:
    result = {**old, "metadata": _metadata(served, new, old)}
    if "status" in new:
        result["status"] = new["status"]
    else:
        result.pop("status", None)
    return result


def _metadata(served: Served, new: Json, old: Json) -> Json:
    meta: Json = dict(old["metadata"])
    if "managedFields" in new["metadata"]:
        meta["managedFields"] = new["metadata"]["managedFields"]
    if served.storage in _METADATA_WITH_STATUS and not served.custom:
        for name in _REACHED:
            if name in new["metadata"]:
                meta[name] = new["metadata"][name]
            else:
                meta.pop(name, None)
    return meta


def _spec_field(new: Json, old: Json, name: str) -> Json:
    spec = dict(old.get("spec") or {})
    wanted = (new.get("spec") or {}).get(name)
    if wanted is None:
        spec.pop(name, None)
    else:
        spec[name] = wanted
    return {**old, "spec": spec, "metadata": _with_managers(new, old)}


def _with_managers(new: Json, old: Json) -> Json:
    meta: Json = dict(old["metadata"])
    if "managedFields" in new["metadata"]:
        meta["managedFields"] = new["metadata"]["managedFields"]
    return meta


def _resized(new: Json, old: Json) -> Json:
    wanted = {c.get("name"): c for c in (new.get("spec") or {}).get("containers") or ()}
    spec = dict(old["spec"])
    spec["containers"] = [
        {**container, **_picked(wanted.get(container["name"], {}))}
        for container in old["spec"]["containers"]
    ]
    return {**old, "spec": spec, "metadata": _with_managers(new, old)}


def _picked(container: Json) -> Json:
    return {name: container[name] for name in _RESIZED if name in container}


def _approval(new: Json, old: Json) -> Json:
    status = dict(old.get("status") or {})
    status["conditions"] = (new.get("status") or {}).get("conditions") or []
    return {**old, "status": status, "metadata": _with_managers(new, old)}
