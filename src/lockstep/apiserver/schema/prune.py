"""Dropping what a schema does not name, and nulls where none may stand."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.schema.node import UNSET, Node

_TYPE_META = ("apiVersion", "kind")


def prune(node: Node, value: Any, path: str, unknown: list[str]) -> None:
    """Drop from *value*, in place, what *node* does not name, and note its paths in *unknown*."""
    if isinstance(value, dict):
        _prune_object(node, value, path, unknown)
    elif isinstance(value, list):
        _prune_list(node, value, path, unknown)


def _prune_object(node: Node, value: Json, path: str, unknown: list[str]) -> None:
    if node.type == "object" and not node.properties and node.values is None and node.preserve:
        return
    for key in list(value):
        if node.embedded and (key in _TYPE_META or key == "metadata"):
            continue
        child = node.properties.get(key) or node.values
        below = f"{path}.{key}" if path else key
        if child is not None:
            _prune_member(child, value, key, below, unknown)
        elif not node.preserve:
            unknown.append(below)
            del value[key]


def _prune_member(child: Node, holder: Json, key: str, path: str, unknown: list[str]) -> None:
    member = holder[key]
    if member is None and child.read_as_empty:
        holder[key] = ""
    elif member is None:
        if not child.nullable and child.default is UNSET and not _keeps_null(child):
            del holder[key]
    else:
        prune(child, member, path, unknown)


def _prune_list(node: Node, value: list[Any], path: str, unknown: list[str]) -> None:
    items = node.items
    if items is None:
        return
    for position, item in enumerate(value):
        if isinstance(item, dict | list):
            prune(items, item, f"{path}[{position}]", unknown)


def _keeps_null(node: Node) -> bool:
    return node.preserve and node.type == ""
