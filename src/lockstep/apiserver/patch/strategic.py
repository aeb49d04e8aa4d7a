"""Strategic merge patch: a merge patch that knows which lists are maps by a key.

The directives ``$patch``, ``$retainKeys``, ``$setElementOrder/LIST`` and
``$deleteFromPrimitiveList/LIST`` mean what they mean to the Kubernetes API server.
"""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver.go_json import type_name
from lockstep.apiserver.patch.errors import PatchError, failed, inapplicable, malformed
from lockstep.apiserver.patch.ordering import in_order, position_key
from lockstep.apiserver.patch.types import ABSENT, Type
from lockstep.apiserver.schema.decode import go_value

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def strategic_merge(doc: Json, patch: Any, kind: Type) -> Json:
    """Return the document with the patch merged in by the type of its kind; neither is changed.

    Raises:
        PatchError: The patch, or one of its directives, is not well formed or does not fit.
    """
    if not isinstance(patch, dict):
        raise malformed(
            f"json: cannot unmarshal {type_name(patch)} into Go value of type "
            "map[string]interface {}"
        )
    return _merge_map(doc, patch, kind)


def _merge_map(original: Json, patch: Json, kind: Type) -> Json:
    directive = patch.get(_PATCH)
    if directive is not None:
        return _replaced_map(patch, directive)
    result, pending = dict(original), dict(patch)
    _retain_keys(result, pending)
    for key in [key for key in pending if key.startswith(_ORDER)]:
        _merge_ordered(result, pending, key, kind)
    for key, value in pending.items():
        if value is None:
            result.pop(key, None)
        elif not key.startswith(_DELETE):
            merged = _merge_value(result.get(key), value, kind.member(key), key)
            if merged is not ABSENT:
                result[key] = merged
    for key, value in pending.items():
        if key.startswith(_DELETE):
            _delete_from_list(result, key.removeprefix(_DELETE), value)
    return result


def _replaced_map(patch: Json, directive: Any) -> Json:
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive == "merge":
        raise malformed("unsupported strategic merge patch format: $patch: merge on a map")
    raise failed(f"unknown patch type: {directive} in map: {go_value(patch)}")


def _merge_value(original: Any, patch: Any, kind: Type, name: str) -> Any:
    if isinstance(patch, dict) and isinstance(original, dict):
        if "replace" in kind.strategies:
            return _clean(patch)
        return _merge_map(original, patch, kind)
    if isinstance(patch, list) and isinstance(original, list) and "merge" in kind.strategies:
        return _merge_list(original, patch, kind, name)
    return _clean(patch)


def _clean(value: Any) -> Any:
    """Return a value of a patch that there was nothing to merge with, without its directives.

    A map that says how it is to be merged is nothing by itself, also when it has other fields.
    """
    if isinstance(value, dict):
        if _PATCH in value:
            return ABSENT
        members = {
            key: _clean(child)
            for key, child in value.items()
            if child is not None and not _is_directive(key)
        }
        return {key: child for key, child in members.items() if child is not ABSENT}
    if isinstance(value, list):
        return [item for item in map(_clean, value) if item is not ABSENT]
    return value


def _is_directive(key: str) -> bool:
    return key in {_PATCH, _RETAIN} or key.startswith((_ORDER, _DELETE))


def _retain_keys(result: Json, patch: Json) -> None:
    if _RETAIN not in patch:
        return
    kept = patch.pop(_RETAIN)
    if not isinstance(kept, list) or not all(isinstance(key, str) for key in kept):
        raise malformed("invalid patch format of retainKeys")
    stated = {key for key, value in patch.items() if value is not None and not _is_directive(key)}
    if not stated <= set(kept):
        raise inapplicable("patch content does not match retainKeys list")
    for key in set(result) - set(kept):
        del result[key]


def _delete_from_list(result: Json, name: str, doomed: Any) -> None:
    if not isinstance(doomed, list):
        raise malformed("invalid patch format of primitive list")
    present = result.get(name)
    if isinstance(present, list):
        result[name] = [item for item in present if item not in doomed]


def _merge_ordered(result: Json, pending: Json, directive: str, kind: Type) -> None:
    """Merge one list together with the order that the client wants for it."""
    name = directive.removeprefix(_ORDER)
    order = pending.pop(directive)
    if not isinstance(order, list):
        raise malformed("invalid patch format of setElementOrder list")
    member = kind.member(name)
    original, patch = result.get(name), pending.pop(name, None)
    if not isinstance(original, list | None) or not isinstance(patch, list | None):
        raise malformed("invalid patch format of setElementOrder list")
    _check_order(patch or [], order, member, name)
    if original is None and patch is None:
        return
    if original is None:
        merged = _clean(patch)
    elif patch is None:
        merged = original
    else:
        merged = _merge_value(original, patch, member, name)
    key = position_key(member.merge_key)
    result[name] = in_order(merged, order, original or [], key)


def _check_order(patch: list[Any], order: list[Any], kind: Type, name: str) -> None:
    key = position_key(kind.merge_key)
    wanted = [key(item) for item in order]
    stated = [key(item) for item in patch if not (isinstance(item, dict) and _PATCH in item)]
    positions = [wanted.index(item) if item in wanted else -1 for item in stated]
    if -1 in positions or positions != sorted(positions):
        raise PatchError(
            500,
            "InternalError",
            f"The order in patch list:\n{patch}\n doesn't match {_ORDER}{name} list:\n{order}\n",
        )


def _merge_list(original: list[Any], patch: list[Any], kind: Type, name: str) -> list[Any]:
    if not any(isinstance(item, dict | list) for item in (*original, *patch)):
        merged = list(dict.fromkeys([*original, *patch]))
        return in_order(merged, patch, original, position_key(""))
    if not all(isinstance(item, dict) for item in (*original, *patch)):
        raise inapplicable("lists of lists are not supported")
    key = kind.merge_key
    if not key:
        raise malformed(f"cannot merge lists without merge key for {name}")
    base, stated, is_replaced = _apply_item_directives(original, patch, key)
    if is_replaced:
        return stated
    return _merge_items(base, stated, original, kind, key)


def _merge_items(
    base: list[Json], patch: list[Json], original: list[Json], kind: Type, key: str
) -> list[Json]:
    merged = list(base)
    for item in patch:
        if key not in item:
            raise failed(f"map: {go_value(item)} does not contain declared merge key: {key}")
        for position, present in enumerate(merged):
            if present.get(key) == item[key]:
                merged[position] = _merge_map(present, item, kind.items)
                break
        else:
            merged.append(_clean(item))
    return in_order(merged, patch, original, position_key(key))


def _apply_item_directives(
    original: list[Json], patch: list[Json], key: str
) -> tuple[list[Json], list[Json], bool]:
    """Carry out deletions and replacements of items; return what is left of both lists."""
    base, stated, is_replaced = list(original), [], False
    for item in patch:
        directive = item.get(_PATCH)
        if directive is None:
            stated.append(item)
        elif directive == "delete":
            if key not in item:
                raise failed(f"map: {go_value(item)} does not contain declared merge key: {key}")
            base = [present for present in base if present.get(key) != item[key]]
        elif directive == "replace":
            is_replaced = True
            rest = {name: value for name, value in item.items() if name != _PATCH}
            if rest:
                stated.append(rest)
        elif directive == "merge":
            raise malformed("merging lists cannot yet be specified in the patch")
        else:
            raise failed(f"unknown patch type: {directive} in map: {go_value(item)}")
    return base, stated, is_replaced
