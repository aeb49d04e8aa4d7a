"""What the status of kinds that make pods may say, and the rules of smaller kinds."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.amounts import NOT_NEGATIVE
from lockstep.apiserver.schema.causes import Cause, invalid, required

_COUNTS = (
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_PARTS = ("updatedReplicas", "readyReplicas", "availableReplicas")
_VOLUME_SETTINGS = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def replicas(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with the numbers of replicas in a deployment's status."""
    state = new.get("status") or {}
    if old is None or state == (old.get("status") or {}):
        return
    yield from (
        invalid(f"status.{name}", state[name], NOT_NEGATIVE)
        for name in _COUNTS
        if isinstance(state.get(name), int) and state[name] < 0
    )
    total = state.get("replicas", 0)
    yield from (
        invalid(f"status.{name}", state.get(name, 0), "cannot be greater than status.replicas")
        for name in _PARTS
        if state.get(name, 0) > total
    )
    if state.get("availableReplicas", 0) > state.get("readyReplicas", 0):
        count, text = state["availableReplicas"], "cannot be greater than readyReplicas"
        yield invalid("status.availableReplicas", count, text)


def volume(new: Json, _old: Json | None) -> list[Cause]:
    """Return what is wrong with a persistent volume: it is kept somewhere."""
    spec = new.get("spec") or {}
    sources = spec.keys() - _VOLUME_SETTINGS
    return [] if sources else [required("spec", "must specify a volume type")]


def ingress(new: Json, _old: Json | None) -> list[Cause]:
    """Return what is wrong with an ingress: it leads somewhere."""
    spec = new.get("spec") or {}
    if spec.get("rules") or spec.get("defaultBackend"):
        return []
    return [invalid("spec", None, "either `defaultBackend` or `rules` must be specified")]


def event(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a new event: it lies where what it is about does."""
    if old is not None:
        return
    is_new = "regarding" in new or new.get("apiVersion", "").startswith("events.k8s.io")
    about = new.get("regarding" if is_new else "involvedObject") or {}
    namespace = about.get("namespace", "")
    if namespace != new["metadata"].get("namespace") and (
        namespace or new["metadata"].get("namespace") != "default"
    ):
        text = "does not match event.namespace"
        yield invalid("involvedObject.namespace", namespace, text)
    if is_new and not new.get("eventTime"):
        yield required("eventTime")


def signing_request(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a request for a certificate: it holds one, as PEM."""
    request = (new.get("spec") or {}).get("request") or ""
    if old is not None or b"BEGIN CERTIFICATE REQUEST" in base64.b64decode(request):
        return []
    return [invalid("spec.request", request, "PEM block type must be CERTIFICATE REQUEST")]


RULES = {
    "CertificateSigningRequest": signing_request,
    "PersistentVolume": volume,
    "Ingress": ingress,
    "Event": event,
}
