"""A schema, ready to check objects against."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from typing import Any

import msgspec

from lockstep.api.wire import Json
from lockstep.apiserver.budget import PROCESSOR_SECONDS, Costly, TooCostly, apart, is_answered
from lockstep.apiserver.schema import components
from lockstep.apiserver.schema.causes import Cause, Reason, forbidden, invalid
from lockstep.apiserver.schema.cel import Rules
from lockstep.apiserver.schema.check import Checker
from lockstep.apiserver.schema.decode import Misfit, misfit
from lockstep.apiserver.schema.defaults import fill_defaults
from lockstep.apiserver.schema.node import UNSET, Node, structural
from lockstep.apiserver.schema.prune import prune
from lockstep.apiserver.schema.shape import shape_of

# With one of these among the causes, CEL rules might meet values of types they do not expect.
_BLOCKING = frozenset(
    {
        Reason.NOT_SUPPORTED,
        Reason.REQUIRED,
        Reason.TOO_LONG,
        Reason.TOO_MANY,
        Reason.TYPE_INVALID,
    }
)
_NOT_BUILT = object()

_UNCHECKED = invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_TOO_COSTLY = forbidden(
    "<nil>",
    "call cost exceeds limit, no further validation rules will be run: "
    f"one object may take {PROCESSOR_SECONDS * 1000:.0f} ms of processor time; make the object "
    "smaller, or the patterns and rules of its definition simpler",
)


class Schema:
    """What objects of one kind look like.

    Objects that are in order are recognised in native code within microseconds; only the others,
    and what types cannot express, are walked through.
    """

    def __init__(self, node: Node, *, strict: bool) -> None:
        self.node = node
        self._strict = strict
        self._shape: Any = _NOT_BUILT
        self._rules = Rules(node) if node.ruled else None

    @classmethod
    def parse(cls, schema: Json) -> Schema:
        """Return the structural *schema* of a custom resource, compiled."""
        return cls(structural(schema, components.node(components.OBJECT_META)), strict=True)

    @classmethod
    def builtin(cls, name: str) -> Schema:
        """Return the schema of the built-in component called *name*, compiled.

        Raises:
            KeyError: when there is no such component.
        """
        return cls(components.node(name), strict=False)

    def fits(self, obj: Json) -> bool:
        """Whether the fast check finds nothing wrong with *obj*."""
        if self._shape is _NOT_BUILT:
            self._shape = shape_of(self.node, strict=self._strict)
        try:
            msgspec.convert(obj, self._shape)
        except (msgspec.ValidationError, RecursionError):
            return False
        return True

    def prune(self, obj: Json) -> list[str]:
        """Drop from *obj*, in place, what the schema does not name; return the paths of that."""
        unknown: list[str] = []
        if self.node.loose or not self.fits(obj):
            prune(self.node, obj, "", unknown)
        return sorted(unknown)

    def unknown_fields(self, obj: Json) -> list[str]:
        """Return the paths of what the schema does not name, and leave *obj* as it is."""
        if not self.node.loose and self.fits(obj):
            return []
        return self.prune(copy.deepcopy(obj))

    def decoding_error(self, obj: Json) -> str | None:
        """Return why *obj* cannot be read as its kind at all, if so, as Kubernetes says it."""
        found = self.misfit(obj)
        return None if found is None else found.error

    def misfit(self, obj: Json) -> Misfit | None:
        """Return what keeps *obj* from being read as its kind at all; always ask before pruning.

        Of a custom resource only the metadata has a type that must be read.
        """
        if self.fits(obj):
            return None
        if not self._strict:
            return misfit(self.node, obj)
        return misfit(self.node.properties["metadata"], obj.get("metadata"), "metadata")

    def default(self, obj: Json) -> None:
        """Fill in, in place, the defaults of what is not there."""
        if self.node.defaulted:
            fill_defaults(self.node, obj)

    def validate(self, obj: Json, old: Json | None = None) -> list[Cause]:
        """Return what is wrong with *obj*, which replaces *old* where that is given."""
        if not is_answered():
            with contextlib.suppress(Costly):
                return self._validate(obj, old)
        return self._validate_apart(obj, old)

    def _validate_apart(self, obj: Json, old: Json | None) -> list[Cause]:
        try:
            found = apart(
                self._question(obj, old), lambda: msgspec.json.encode(self._validate(obj, old))
            )
        except TooCostly:
            return [_TOO_COSTLY]
        return msgspec.json.decode(found, type=list[Cause])

    def _question(self, obj: Json, old: Json | None) -> bytes:
        """Return what a verdict depends on: of the metadata, rules see the name alone."""
        seen = [
            None if one is None else (_name(one), {k: v for k, v in one.items() if k != "metadata"})
            for one in (obj, old)
        ]
        return hashlib.sha256(msgspec.json.encode([id(self), seen])).digest()

    def _validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        before = UNSET if old is None else old
        is_shaped = self.fits(obj)
        if not is_shaped or self.node.checked:
            Checker(causes, quick=is_shaped).check(self.node, obj, before, "")
        if self._rules is None:
            return causes
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, _UNCHECKED]
        return [*causes, *self._rules.check(obj, old)]


def _name(obj: Json) -> Any:
    metadata = obj.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None
