"""Walks over objects along their types: what fields are there, what differs, merging, removing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.patch.errors import mistyped
from lockstep.apiserver.patch.fieldset import (
    LEAF,
    SELF,
    FieldSet,
    has_self,
    item_key,
    show_element,
    text_key,
)
from lockstep.apiserver.patch.types import ABSENT, Type
from lockstep.apiserver.recent import Recent, content
from lockstep.apiserver.schema.decode import go_value, unstructured

_added_lists: Recent[tuple[FieldSet | None, FieldSet | None]] = Recent()
"""What is modified and added where a list takes the place of an empty one, by its type."""


def key_of(item: Any, kind: Type) -> str | None:
    """Return the key of a list's item in a field set; nothing if it has none."""
    if not kind.keys:
        if item is None or isinstance(item, dict | list):
            return None
        return item_key("v", item)
    if not isinstance(item, dict):
        return None
    if len(kind.keys) == 1 and isinstance(value := item.get(kind.keys[0]), str):
        return text_key(kind.keys[0], value)
    keys = {}
    for name in kind.keys:
        value = item.get(name, ABSENT)
        if value is ABSENT:
            value = kind.items.member(name).default
        if value is not None:
            keys[name] = value
    return item_key("k", keys) if keys else None


def _keyed(items: Iterable[Any], kind: Type) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        key = key_of(item, kind)
        if key is not None:
            found.setdefault(key, []).append(item)
    return found


def added(value: Any, kind: Type) -> FieldSet:
    """Return the fields of something new: every place in it, containers too."""
    if value.__class__ is dict:
        if not value or kind.map_is_atomic:
            return LEAF
        for child in value.values():
            if child and (child.__class__ is dict or child.__class__ is list):
                return _added_members(value, kind)
        # Of a flat map only the names matter, and they recur.
        return kind.flat(tuple(value))
    if value.__class__ is list and value and not kind.list_is_atomic:
        node = {SELF: LEAF}
        inner = kind.items
        for item in value:
            item_place = key_of(item, kind)
            if item_place is not None:
                # Items that share a key are one value as long as they do.
                node[item_place] = LEAF if item_place in node else added(item, inner)
        return node
    return LEAF


def _added_members(value: Json, kind: Type) -> FieldSet:
    node: FieldSet = {SELF: LEAF}
    fields = kind.fields
    for name, child in value.items():
        found = fields.get(name)
        key, inner = (found[0], found[1]) if found else (f"f:{name}", kind.values)
        nested = child.__class__ is dict or child.__class__ is list
        node[key] = added(child, inner) if nested else LEAF
    return node


def field_set(value: Any, kind: Type) -> FieldSet | None:
    """Return the fields that an applied configuration sets: its leaves and list items."""
    if isinstance(value, dict):
        if kind.map_is_atomic:
            return LEAF
        node: FieldSet = {}
        for name, child in value.items():
            named = kind.fields.get(name)
            inner = field_set(child, named[1] if named else kind.values)
            if child is None or child == {} or named is None:
                inner = _with_self(inner)
            if inner is not None:
                node[f"f:{name}"] = inner
        return node or None
    if isinstance(value, list):
        if kind.list_is_atomic:
            return LEAF
        node = {}
        for key, items in _keyed(value, kind).items():
            node[key] = _with_self(field_set(items[0], kind.items) if len(items) == 1 else LEAF)
        return node or None
    if value is None and not kind.is_scalar:
        atomic = kind.map_is_atomic if kind.is_map else kind.list_is_atomic
        return LEAF if atomic else None
    return LEAF


def _with_self(node: FieldSet | None) -> FieldSet:
    if not node:
        return LEAF
    return node if SELF in node else {SELF: LEAF, **node}


@dataclass(slots=True)
class Comparison:
    """Where a new object differs from an old one."""

    removed: FieldSet | None = None
    modified: FieldSet | None = None
    added: FieldSet | None = None

    def with_added(self, members: FieldSet) -> Comparison:
        """Add members that are new as a whole; the given dict may become part of this."""
        if self.added is not None:
            self.added.update(members)
        elif members:
            self.added = members
        return self

    def put(self, key: str, inner: Comparison) -> None:
        """Add the comparison of one member."""
        for name in ("removed", "modified", "added"):
            node = getattr(inner, name)
            if node is not None:
                whole = getattr(self, name)
                if whole is None:
                    setattr(self, name, {key: node})
                else:
                    whole[key] = node


def compare(old: Any, new: Any, kind: Type) -> Comparison:
    """Return what was removed, modified and added between two values of one place."""
    if old is ABSENT:
        return Comparison(added=added(new, kind))
    if new is ABSENT:
        return Comparison(removed=added(old, kind))
    if old == new and old.__class__ is new.__class__:
        return Comparison()
    both = (old.__class__, new.__class__)
    if (old or new) and all(c is dict or c is type(None) for c in both):
        if not kind.map_is_atomic:
            return _compare_maps(old or {}, new or {}, kind)
    elif (old or new) and all(c is list or c is type(None) for c in both):
        if not kind.list_is_atomic:
            return _compare_lists(old or [], new or [], kind)
    elif old == new and _are_numbers(old, new):
        return Comparison()
    return _compare_unlike(old, new, kind)


def _are_numbers(*values: Any) -> bool:
    """Whether all are JSON numbers, of which 1 and 1.0 are one and True is none."""
    return all(isinstance(value, int | float) and value.__class__ is not bool for value in values)


def _compare_unlike(old: Any, new: Any, kind: Type) -> Comparison:
    below = added(new, kind) if isinstance(new, dict | list) else LEAF
    children = {key: node for key, node in below.items() if key != SELF}
    return Comparison(modified=LEAF, added=children or None)


def _compare_maps(old: Json, new: Json, kind: Type) -> Comparison:
    result = Comparison()
    fields = kind.fields
    plainly_new: FieldSet = {}
    for name, value in new.items():
        found = fields.get(name)
        key, inner, zero = found if found is not None else (f"f:{name}", kind.values, ABSENT)
        before = old.get(name, zero)
        if before is ABSENT:
            nested = value.__class__ is dict or value.__class__ is list
            plainly_new[key] = added(value, inner) if nested else LEAF
        elif before != value or before.__class__ is not value.__class__:
            result.put(key, compare(before, value, inner))
    for name, value in old.items():
        if name not in new:
            found = fields.get(name)
            key, inner, zero = found if found is not None else (f"f:{name}", kind.values, ABSENT)
            result.put(key, compare(value, zero, inner))
    return result.with_added(plainly_new)


def _compare_lists(old: list[Any], new: list[Any], kind: Type) -> Comparison:
    if old or (known_by := content(new)) is None:
        return _compare_items(old, new, kind)
    known = _added_lists.get(known_by, kind)
    if known is None:
        result = _compare_items(old, new, kind)
        known = result.modified, result.added
        _added_lists.keep(known_by, known, kind)
    return Comparison(None, *known)


def _compare_items(old: list[Any], new: list[Any], kind: Type) -> Comparison:
    before, after = _keyed(old, kind), _keyed(new, kind)
    result = Comparison()
    for key in {**before, **after}:
        left, right = before.get(key, []), after.get(key, [])
        if not left and len(right) == 1:
            result.with_added({key: added(right[0], kind.items)})
        elif len(left) <= 1 and len(right) <= 1:
            one = compare(left[0] if left else ABSENT, right[0] if right else ABSENT, kind.items)
            result.put(key, one)
        elif left != right:
            # Items that share a key are one value as long as they do.
            result.put(key, Comparison(modified=LEAF))
    return result


def merge(live: Any, applied: Any, kind: Type) -> Any:
    """Return the live value with an applied configuration merged in."""
    if applied is ABSENT:
        return live
    if live is ABSENT:
        return _copied(applied)
    if isinstance(applied, dict) and isinstance(live, dict) and (live or applied):
        if not kind.map_is_atomic:
            result = dict(live)
            for name, value in applied.items():
                result[name] = merge(live.get(name, ABSENT), value, kind.member(name))
            return result
    elif isinstance(applied, list) and isinstance(live, list) and (live or applied):
        if not kind.list_is_atomic:
            return _merge_lists(live, applied, kind)
    elif applied is None and live and not kind.is_scalar:
        atomic = kind.map_is_atomic if isinstance(live, dict) else kind.list_is_atomic
        return None if atomic else live
    return _copied(applied)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(child) for name, child in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _merge_lists(live: list[Any], applied: list[Any], kind: Type) -> list[Any]:
    """Merge item by item: applied ones in their order, others where they stood among them."""
    ours = _keyed(applied, kind)
    theirs = _keyed(live, kind)
    pending = dict.fromkeys(ours)
    shared = deque(key for key in pending if key in theirs)
    result: list[Any] = []

    def take(key: str) -> None:
        known = theirs.get(key, [])
        before = known[0] if len(known) == 1 else ABSENT
        result.append(merge(before, ours[key][0], kind.items))
        del pending[key]
        if shared and shared[0] == key:
            shared.popleft()

    for item in live:
        key = key_of(item, kind)
        if key is None or key not in ours:
            result.append(item)
            continue
        if key not in pending or (shared and shared[0] != key):
            continue
        while (first := next(iter(pending))) != key:
            take(first)
        take(key)
    for key in list(pending):
        take(key)
    return result


def remove(value: Any, fields: FieldSet, kind: Type, owned: FieldSet | None = None) -> Any:
    """Return the value without the places in a set.

    What gets empty by that is absent, unless it is itself among the places that are *owned*.
    """
    kept: Any = value
    if isinstance(value, dict) and value and not kind.map_is_atomic:
        kept = {}
        for name, child in value.items():
            rest = _remaining(child, f"f:{name}", fields, kind.member(name), owned)
            if rest is not ABSENT:
                kept[name] = rest
    elif isinstance(value, list) and value and not kind.list_is_atomic:
        kept = []
        for item in value:
            rest = _remaining(item, key_of(item, kind), fields, kind.items, owned)
            if rest is not ABSENT:
                kept.append(rest)
    if value and not kept and (owned is None or not has_self(owned)):
        return ABSENT
    return kept


def _remaining(
    child: Any, key: str | None, fields: FieldSet, kind: Type, owned: FieldSet | None
) -> Any:
    node = None if key is None else fields.get(key)
    if key is None or node is None:
        return child
    if has_self(node):
        return ABSENT
    return remove(child, node, kind, owned.get(key) if owned else None)


def with_named_parents(node: FieldSet, kind: Type) -> FieldSet:
    """Return the set with every named field on the way to a member, itself a member."""
    result: FieldSet = {}
    for key, child in node.items():
        if key == SELF:
            result[key] = child
            continue
        named = kind.fields.get(key[2:]) if key.startswith("f:") else None
        inner = kind.items if key[0] in "kvi" else named[1] if named else kind.values
        deep = with_named_parents(child, inner)
        result[key] = _with_self(deep) if named is not None and deep else deep
    return result


def check_shape(value: Any, kind: Type, path: str = "") -> None:
    """Refuse an applied configuration that does not have the shape of its kind.

    Raises:
        PatchError: A field is not declared, is of another type, or a list has a key twice.
    """
    if isinstance(value, dict):
        if not kind.is_map:
            raise mistyped(f"{path}: expected {_expected(kind)}, got {_shown(value, kind)}")
        for name, child in value.items():
            if name not in kind.fields and not kind.is_open:
                raise mistyped(f"{path}.{name}: field not declared in schema")
            check_shape(child, kind.member(name), f"{path}.{name}")
    elif isinstance(value, list):
        if not kind.is_list:
            raise mistyped(f"{path}: expected {_expected(kind)}, got {_shown(value, kind)}")
        _check_items(value, kind, path)
    elif value is not None and not kind.is_scalar:
        raise mistyped(f"{path}: expected {_expected(kind)}, got {_shown(value, kind)}")
    elif value is not None and kind.basic == "string" and not isinstance(value, str):
        raise mistyped(f"{path}: expected string, got {unstructured(value)}")


def _check_items(value: list[Any], kind: Type, path: str) -> None:
    seen = set()
    for position, item in enumerate(value):
        if kind.list_is_atomic:
            check_shape(item, kind.items, f"{path}[{position}]")
            continue
        key = key_of(item, kind)
        if key is None:
            names = ", ".join(f'"{name}"' for name in kind.keys)
            raise mistyped(
                f"{path}: element {position}: associative list with keys has an element that "
                f"omits all key fields [{names}] (and doesn't have default values for any key "
                "fields)"
            )
        element = show_element(key)
        if key in seen:
            raise mistyped(f"{path}: duplicate entries for key {element}")
        seen.add(key)
        check_shape(item, kind.items, path + element)


def _shown(value: Any, kind: Type) -> str:
    return unstructured(value) if kind.basic else f"&{{{go_value(value)}}}"


def _expected(kind: Type) -> str:
    if kind.is_map:
        return "map"
    return "list" if kind.is_list else kind.basic or "any scalar"
