"""Filling in the defaults of a structural schema."""

from __future__ import annotations

import copy
from typing import Any

from lockstep.apiserver.schema.node import UNSET, Node


def fill_defaults(node: Node, value: Any) -> None:
    """Give *value*, in place, every default that *node* has for what is not there."""
    if isinstance(value, dict):
        for name, child in node.properties.items():
            if child.default is not UNSET and _is_missing(child, value.get(name, UNSET)):
                value[name] = copy.deepcopy(child.default)
            if child.defaulted and name in value:
                fill_defaults(child, value[name])
        if node.values is not None:
            _fill_items(node.values, value, [k for k in value if k not in node.properties])
    elif isinstance(value, list) and node.items is not None:
        _fill_items(node.items, value, range(len(value)))


def _fill_items(child: Node, holder: Any, keys: Any) -> None:
    for key in keys:
        if child.default is not UNSET and holder[key] is None and not child.nullable:
            holder[key] = copy.deepcopy(child.default)
        if child.defaulted:
            fill_defaults(child, holder[key])


def _is_missing(child: Node, value: Any) -> bool:
    return value is UNSET or (value is None and not child.nullable)
