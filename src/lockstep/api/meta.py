"""Object metadata, shared by every kind."""

from __future__ import annotations

from typing import Any, Literal

from lockstep.api.names import API_VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class OwnerReference(Wire, frozen=True):
    """A pointer to the object that owns this one; the owner's end is this one's end."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Wire, frozen=True):
    """The metadata fields that Lockstep reads or writes; ``managedFields`` is never decoded."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class OwnObject(Wire, frozen=True, kw_only=True):
    """An object of one of Lockstep's own kinds."""

    metadata: ObjectMeta
    api_version: str = API_VERSION


class Condition(Wire, frozen=True):
    """One aspect of an object's state, in the standard shape (``metav1.Condition``)."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class LabelSelectorRequirement(Wire, frozen=True):
    """One set-based requirement of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = []


class LabelSelector(Wire, frozen=True):
    """A label selector; all of its parts must hold, and an empty one matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


def owner_reference(obj: Any, resource: Resource[Any] | None = None) -> dict[str, Any]:
    """Return the reference by which *obj* controls another object, and takes it along at its end.

    *resource* says the kind of objects that do not say it themselves.
    """
    kind = obj if resource is None else resource
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": obj.metadata.name,
        "uid": obj.metadata.uid,
        "controller": True,
    }


def owned_by(obj: Any, owner: Any) -> bool:
    """Return whether *owner* is among the owners of *obj*."""
    return any(one.uid == owner.metadata.uid for one in obj.metadata.owner_references)


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner that controls the object, if one does."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None
