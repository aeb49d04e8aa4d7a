"""What the OpenAPI documents say about one resource."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import Kind


@dataclass(frozen=True, slots=True)
class Definition:
    """One served resource: its kind, and the schema of its CRD where it has one."""

    kind: Kind
    list_kind: str = ""
    """Kind of its lists, where that is not the kind followed by ``List``."""
    schema: Json | None = None
    """``openAPIV3Schema`` of a custom resource; nothing for a built-in kind."""

    @property
    def component(self) -> str:
        """Return the name of its schema: a custom resource's begins with its group, reversed."""
        kind = self.kind
        if kind.schema_name:
            return kind.schema_name
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])

    @property
    def list_component(self) -> str:
        """Return the name of the schema of its lists."""
        if self.list_kind and not self.kind.schema_name:
            return self.component.rpartition(".")[0] + f".{self.list_kind}"
        return f"{self.component}List"

    @property
    def gvk(self) -> Json:
        """Return its group, version and kind in the form that documents use."""
        kind = self.kind
        return {"group": kind.group, "kind": kind.kind, "version": kind.version}
