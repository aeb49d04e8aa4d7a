"""What the server knows about one built-in resource."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.schema import Cause

Prepare = Callable[[Json, Json | None], None]
Begin = Callable[[Json], None]
Validate = Callable[[Json, Json | None], list[Cause]]

ALL_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)

# Selectable fields whose name is not the path that they are read from.
_READ_FROM = {
    "source": "source.component",
    "status.successful": "status.succeeded",
    # It may be asked for, but is nowhere filled in.
    "status.podIPs": "status.none",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One built-in resource: how it is named and served, and how its objects are checked."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str
    schema_name: str
    """Name of its component in the OpenAPI documents."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    selectable: tuple[tuple[str, str], ...] = ()
    """Field selectors beyond name and namespace: dotted path, and the value where it is unset."""
    verbs: tuple[str, ...] = ALL_VERBS
    storage: tuple[str, str] = ("", "")
    """Group and plural that its objects are stored under; events are served by two groups."""
    counts_generation: bool = False
    """Whether ``metadata.generation`` counts the changes of what is wished for."""
    status_at_creation: bool = False
    """Whether a status that comes with the creation is kept (nodes) rather than dropped."""
    prepare: Prepare = lambda _new, _old: None
    """Fill in defaults, in place; the second argument is the stored object when it is replaced."""
    begin: Begin = lambda _new: None
    """Fill in what the server itself decides about a new object; it belongs to no manager."""
    validate: Validate = lambda _new, _old: []
    """Say what is wrong with an object that has been prepared."""

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """Whether the status has a subresource of its own."""
        return "status" in self.subresources

    def field_values(self, obj: Json) -> dict[str, str]:
        """Return what field selectors see of *obj*."""
        meta = obj.get("metadata") or {}
        values = {"metadata.name": meta.get("name", "")}
        if self.namespaced:
            values["metadata.namespace"] = meta.get("namespace", "")
        for path, unset in self.selectable:
            values[path] = _text(obj, path, unset)
        return values


def _text(obj: Json, path: str, unset: str) -> str:
    value: Any = obj
    for name in _READ_FROM.get(path, path).split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None or value == "":
        return unset
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
