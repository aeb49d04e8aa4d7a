"""The fast check: a schema as msgspec types, which test an object in native code.

It answers only whether everything is in order. What is wrong, and whether something that types
cannot express is wrong, the slow check finds out.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec

from lockstep.apiserver.schema.formats import BASE64, DATE_TIME, QUANTITY_PATTERN
from lockstep.apiserver.schema.node import INT_OR_STRING, QUANTITY, UNSET, Node

# What texts of the built-in kinds must look like to be read at all.
_READABLE = {"date-time": DATE_TIME, "byte": BASE64}
_INT32 = 2**31
_INT64 = 2**63


def shape_of(node: Node, *, strict: bool) -> Any:
    """Return a type that ``msgspec.convert`` accepts exactly the well-formed objects for.

    With *strict* the bounds and the required fields of the schema are part of it. A schema that
    refers to itself has no such type; what is returned then accepts nothing.
    """
    builder = _Builder(strict)
    built = builder.of(node)
    return None if builder.is_recursive else built


class _Builder:
    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.known: dict[int, Any] = {}
        self.is_recursive = False

    def of(self, node: Node) -> Any:
        built = self._scalar_or_inside(node)
        return built | None if node.nullable and built is not Any else built

    def _scalar_or_inside(self, node: Node) -> Any:
        if node.type == "object":
            return self._object(node)
        if node.type == "array":
            items = self.of(node.items) if node.items else Any
            return self._bounded(list[items], node, min_length="minItems", max_length="maxItems")  # type: ignore[valid-type]
        return self._scalar(node)

    def _scalar(self, node: Node) -> Any:
        if node.type == "string":
            return self._text(node)
        if node.type == "integer":
            return self._integer(node)
        if node.type == "number":
            return self._number(node)
        plain: dict[str, Any] = {
            "boolean": bool,
            INT_OR_STRING: int | str,
            QUANTITY: int | float | Annotated[str, msgspec.Meta(pattern=QUANTITY_PATTERN)],
        }
        return plain.get(node.type, Any)

    def _text(self, node: Node) -> Any:
        if not self.strict:
            pattern = _READABLE.get(node.bounds.get("format", ""))
            return Annotated[str, msgspec.Meta(pattern=pattern)] if pattern else str
        enum = node.bounds.get("enum")
        if enum and all(isinstance(v, str) for v in enum):
            return Literal[tuple(enum)]
        return self._bounded(str, node, min_length="minLength", max_length="maxLength")

    def _integer(self, node: Node) -> Any:
        limit = _INT32 if node.bounds.get("format") == "int32" else _INT64
        low, high = -limit, limit - 1
        if self.strict and (least := node.bounds.get("minimum")) is not None:
            is_open = bool(node.bounds.get("exclusiveMinimum"))
            low = max(low, math.floor(least) + 1 if is_open else math.ceil(least))
        if self.strict and (most := node.bounds.get("maximum")) is not None:
            is_open = bool(node.bounds.get("exclusiveMaximum"))
            high = min(high, math.ceil(most) - 1 if is_open else math.floor(most))
        return Annotated[int, msgspec.Meta(ge=low, le=high)]

    def _number(self, node: Node) -> Any:
        limits: dict[str, Any] = {}
        if self.strict and (least := node.bounds.get("minimum")) is not None:
            limits["gt" if node.bounds.get("exclusiveMinimum") else "ge"] = least
        if self.strict and (most := node.bounds.get("maximum")) is not None:
            limits["lt" if node.bounds.get("exclusiveMaximum") else "le"] = most
        return Annotated[float, msgspec.Meta(**limits)] if limits else float

    def _bounded(self, built: Any, node: Node, **names: str) -> Any:
        if not self.strict:
            return built
        limits: dict[str, Any] = {
            ours: node.bounds[theirs] for ours, theirs in names.items() if theirs in node.bounds
        }
        return Annotated[built, msgspec.Meta(**limits)] if limits else built

    def _object(self, node: Node) -> Any:
        if node.values is not None:
            return dict[str, self.of(node.values)]  # type: ignore[misc]
        if node.embedded or (node.preserve and not node.properties):
            return dict[str, Any]
        if id(node) not in self.known:
            self.known[id(node)] = None
            self.known[id(node)] = self._struct(node)
        built = self.known[id(node)]
        if built is None:
            self.is_recursive = True
            return Any
        return built

    def _struct(self, node: Node) -> Any:
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        for position, (name, child) in enumerate(node.properties.items()):
            field = f"f{position}"
            names[field] = name
            # Components of built-in kinds are checked for required fields by their own rules.
            must = self.strict and not node.name and name in node.required
            if must and child.default is UNSET:
                fields.append((field, self.of(child)))
            else:
                fields.append((field, self.of(child) | msgspec.UnsetType, msgspec.UNSET))
        return msgspec.defstruct(
            f"Shape{id(node)}",
            fields,
            rename=names,
            kw_only=True,
            gc=False,
            forbid_unknown_fields=not node.preserve,
        )
