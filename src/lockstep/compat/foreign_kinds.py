"""Kinds of other systems as CRDs that keep every field.

A dialect's structs name only the fields that they read. Its CRDs therefore keep what they do not
know, so that an object comes back as its user wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, Wire

T = TypeVar("T", bound=Wire)

DIALECT_LABEL: Final = "lockstep.dev/dialect"
"""On a CRD that Lockstep installed: its dialect. Objects of such a kind are ours to serve."""

PROTECTED: Final = (".k8s.io", ".kubernetes.io")
"""Groups whose CRDs a server takes only with a word on who approved them."""
UNAPPROVED: Final = {"api-approved.kubernetes.io": "unapproved, it keeps what it does not know"}


@dataclass(frozen=True, slots=True)
class ForeignKind:
    """One kind of a dialect, as its CRD presents it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    columns: tuple[tuple[str, str, str], ...] = ()
    """Printer columns: name, type and JSONPath."""
    properties: Json | None = None
    """Schemas of fields worth checking at the door, by name, beside ``spec`` and ``status``."""
    scale: Json | None = None
    """The ``scale`` subresource, as a CRD states it."""
    more_versions: tuple[str, ...] = ()
    """Versions of the same fields that are served beside the one that is stored."""
    view: type[AnyObject] = AnyObject
    """What its objects are read as: fields beside ``spec`` and ``status`` have a name there."""

    def read_as(self, view: type[T]) -> Resource[T]:
        """Return the kind as a resource of the API server, whose objects are decoded to *view*."""
        return Resource(self.group, self.version, self.plural, self.kind, self.namespaced, view)

    @property
    def resource(self) -> Resource[AnyObject]:
        """Return the kind as a resource whose spec and status stay plain trees."""
        return self.read_as(self.view)

    def manifest(self, dialect: str) -> Json:
        """Return the CRD as a plain object, marked as belonging to *dialect*."""
        open_: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        properties = {"spec": open_, "status": open_, **(self.properties or {})}
        shown = [{"name": n, "type": t, "jsonPath": p} for n, t, p in self.columns]
        age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
        version: Json = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {**open_, "properties": properties}},
            "subresources": {"status": {}, **({"scale": self.scale} if self.scale else {})},
            "additionalPrinterColumns": [*shown, age],
        }
        names: Json = {
            "plural": self.plural,
            "singular": self.kind.lower(),
            "kind": self.kind,
            "listKind": f"{self.kind}List",
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{self.plural}.{self.group}",
                "labels": {DIALECT_LABEL: dialect},
                **({"annotations": UNAPPROVED} if self.group.endswith(PROTECTED) else {}),
            },
            "spec": {
                "group": self.group,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "names": names,
                "versions": [
                    version,
                    *({**version, "name": v, "storage": False} for v in self.more_versions),
                ],
            },
        }


def family(group: str, version: str) -> partial[ForeignKind]:
    """Return what makes the kinds of *group* in *version*."""
    return partial(ForeignKind, group, version)
