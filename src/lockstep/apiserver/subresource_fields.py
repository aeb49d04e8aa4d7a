"""Which part of an object a write through a subresource, or past it, can reach."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.builtin.quality import quality_of_service
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.schema.causes import forbidden, invalid

_CLIENTS_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
# What of this a write to the status of a built-in kind does not reach; of other kinds, nothing.
_OUT_OF_REACH = {
    "deployments.apps": ("labels",),
    "pods": ("ownerReferences",),
    "resourceclaims.resource.k8s.io": _CLIENTS_METADATA,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _CLIENTS_METADATA,
    "volumeattachments.storage.k8s.io": _CLIENTS_METADATA,
}
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
            return _past_status(new, old)
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
    meta = _with_managers(new, old)
    kept = _CLIENTS_METADATA if served.custom else _OUT_OF_REACH.get(served.storage, ())
    for name in _CLIENTS_METADATA:
        if name in kept:
            continue
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
    state = dict(old.get("status") or {})
    state["conditions"] = (new.get("status") or {}).get("conditions") or []
    return {**old, "status": state, "metadata": _with_managers(new, old)}


def require_gentle(new: Json, old: Json, subresource: str) -> None:
    """Require that a running pod stays what it is: nothing is taken from it but what may change.

    Raises:
        StatusError: when an ephemeral container would change, or the quality of service.
    """
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if subresource == "resize":
        quality = quality_of_service(before)
        if quality_of_service(after) == quality:
            return
        text = "Pod QOS Class may not change as a result of resizing"
        wrong = invalid("spec", quality, text)
    else:
        kept = {c.get("name"): c for c in after.get("ephemeralContainers") or ()}
        changed = [
            c["name"]
            for c in before.get("ephemeralContainers") or ()
            if kept.get(c.get("name")) != c
        ]
        if not changed:
            return
        text = f'existing ephemeral containers "{changed[0]}" may not be '
        text += "changed" if changed[0] in kept else "removed"
        wrong = forbidden("spec.ephemeralContainers", text)
    raise status.invalid("", "Pod", new["metadata"]["name"], [wrong])
