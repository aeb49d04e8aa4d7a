"""The order in which Kubernetes writes the fields of an object, for messages that show it whole."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.schema.node import Node
from lockstep.apiserver.schema.zeros import zeros_of


def in_go_order(value: Any, node: Node | None, touched: Any = None) -> Any:
    """Return *value*, which *node* describes, with its fields in the order of its Go struct.

    What a patch has gone through, as *touched* says in nested dicts, has its fields sorted by name.
    """
    if isinstance(value, list):
        items = node.items if node is not None else None
        return [in_go_order(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    below: Json = touched if isinstance(touched, dict) else {}
    return {
        name: in_go_order(value[name], node.child(name) if node else None, below.get(name))
        for name in _order(value, node, touched)
    }


def _order(value: Json, node: Node | None, touched: Any) -> list[str]:
    known = zeros_of(node.name).order if node is not None and touched is None else []
    first = [name for name in known if name in value]
    return [*first, *sorted(value.keys() - set(first))]


def paths_touched(operations: Any) -> Json:
    """Return what the operations of a JSON patch go through, as nested dicts."""
    root: Json = {}
    for operation in operations if isinstance(operations, list) else ():
        for key in ("path", "from"):
            place = root
            for step in str(operation.get(key, "")).split("/")[1:-1]:
                place = place.setdefault(step.replace("~1", "/").replace("~0", "~"), {})
    return root
