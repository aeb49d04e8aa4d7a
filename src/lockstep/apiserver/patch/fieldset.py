"""Sets of fields in the form in which ``managedFields`` carries them (FieldsV1), and their algebra.

A set is a tree of dicts. A key is ``f:NAME`` for a member of a map, ``k:{...}`` for an item of a
keyed list, ``v:VALUE`` for an item of a set; ``.`` says that the place itself belongs to the set,
and so does an empty dict. Sets are never changed once made, so that they can share parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

FieldSet = dict[str, Any]

LEAF: Final[FieldSet] = {}
SELF: Final = "."

_encode = msgspec.json.Encoder(order="sorted").encode
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def item_key(prefix: str, value: Any) -> str:
    """Return the key of a list's item: prefix ``k`` with its keys, or ``v`` with its value."""
    text = _encode(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.translate(_HTML)
    return f"{prefix}:{text}"


@lru_cache(maxsize=4096)
def text_key(name: str, value: str) -> str:
    """Return the key of a list's item that is known by one text."""
    return item_key("k", {name: value})


def has_self(node: FieldSet) -> bool:
    """Whether the place of this node belongs to the set."""
    return not node or SELF in node


def _node(member: bool, children: FieldSet) -> FieldSet | None:
    if not children:
        return LEAF if member else None
    return {SELF: LEAF, **children} if member else children


def in_order(node: FieldSet) -> FieldSet:
    """Return the same set with the members of each place in order, as Kubernetes writes it."""
    return {key: in_order(node[key]) for key in sorted(node)} if node else node


def union(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    """Return what is in either set; ``None`` is the empty set, here and below."""
    if left is None or left is right:
        return right
    if right is None:
        return left
    children = {key: node for key, node in left.items() if key != SELF}
    for key, node in right.items():
        if key != SELF:
            merged = union(children.get(key), node)
            if merged is not None:
                children[key] = merged
    return _node(has_self(left) or has_self(right), children)


def intersection(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    """Return what is in both sets."""
    if left is None or right is None:
        return None
    if left is right:
        return left
    children = {}
    for key, node in left.items():
        if key != SELF and key in right:
            common = intersection(node, right[key])
            if common is not None:
                children[key] = common
    return _node(has_self(left) and has_self(right), children)


def difference(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    """Return what is in the left set only; what lies below a place is not removed with it."""
    if left is None or right is None:
        return left
    if left is right:
        return None
    children = {}
    is_whole = not (has_self(left) and has_self(right))
    for key, node in left.items():
        if key == SELF:
            continue
        rest = difference(node, right[key]) if key in right else node
        is_whole = is_whole and rest is node
        if rest is not None:
            children[key] = rest
    return left if is_whole else _node(has_self(left) and not has_self(right), children)


def paths(node: FieldSet | None, prefix: str = "") -> Iterator[str]:
    """Yield the path of every place in the set, as messages show them."""
    if node is None:
        return
    if prefix and has_self(node):
        yield prefix
    for key in sorted(node):
        if key != SELF:
            yield from paths(node[key], prefix + show_element(key))


def show_element(key: str) -> str:
    """Return one step of a path: ``.name``, ``[key="value"]`` or ``[="value"]``."""
    kind, _, text = key.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    if kind == "k":
        shown = (f"{name}={_show(value)}" for name, value in sorted(json.loads(text).items()))
        return f"[{','.join(shown)}]"
    return f"[{text}]"


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def is_well_formed(node: Any) -> bool:
    """Whether a value that a client sent is a field set."""
    if not isinstance(node, dict):
        return False
    return all(_is_element(key) and is_well_formed(child) for key, child in node.items())


def _is_element(key: str) -> bool:
    if key == SELF:
        return True
    kind, colon, text = key.partition(":")
    if not colon or kind not in {"f", "k", "v", "i"}:
        return False
    if kind == "f":
        return True
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, {"k": dict, "i": int}.get(kind, object))
