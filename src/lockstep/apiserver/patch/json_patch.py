"""JSON patch (RFC 6902), with the error texts of the Kubernetes API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from lockstep.api.wire import Json
from lockstep.apiserver.budget import Costly, Stopwatch
from lockstep.apiserver.go_json import type_name
from lockstep.apiserver.patch.errors import PatchError, inapplicable, malformed, too_costly

MAX_OPERATIONS: Final = 10_000
MAX_COPIED: Final = 3 << 20
"""Bytes of JSON that the copies of one patch may add, as in Go's library."""
_SECONDS: Final = 0.05
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_ABSENT: Final = object()
_UNDECODED: Final = "error decoding patch: json: cannot unmarshal"
_AS_LIST: Final = "into Go value of type []handlers.jsonPatchOp"
_AS_OPERATION: Final = "into Go value of type handlers.jsonPatchOp"
_Change = Callable[[Any, str], None]


def json_patch(doc: Json, operations: Any) -> Json:
    """Return the document after all operations; the given one is left as it was.

    Raises:
        PatchError: The patch is not well formed (400), costs too much (413), or one of its
            operations does not fit the document (422).
    """
    if not isinstance(operations, list):
        raise malformed(f"{_UNDECODED} {type_name(operations)} {_AS_LIST}")
    if wrong := next((op for op in operations if not isinstance(op, dict)), None):
        raise malformed(f"{_UNDECODED} {type_name(wrong)} {_AS_OPERATION}")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}",
        )
    result = _applied(_decode(_encode(doc)), operations)
    if not isinstance(result, dict):
        raise inapplicable("the patched document is not an object")
    return result


def _applied(doc: Any, operations: list[Json]) -> Any:
    """Return *doc* after all operations; it is changed in place, so no other code may hold it."""
    watch, copied = Stopwatch(_SECONDS), 0
    for operation in operations:
        kind = operation.get("op", "unknown")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if kind == "copy":
            doc, copied = _copy(doc, operation, copied)
        elif handler is None:
            raise inapplicable(f"Unexpected kind: {kind}")
        else:
            doc = handler(doc, operation)
        try:
            watch.check()
        except Costly:
            text = f"The JSON patch takes more than {_SECONDS * 1000:.0f} ms of processor time"
            raise too_costly(f"{text}; send it in parts") from None
    return doc


def _add(doc: Any, operation: Json) -> Any:
    path, value = _pointer(operation, "path"), _value(operation)
    return _put(doc, path, value, "add")


def _put(doc: Any, path: str, value: Any, name: str) -> Any:
    def change(parent: Any, key: str) -> None:
        if isinstance(parent, dict):
            parent[key] = value
        else:
            index = len(parent) if key == "-" else _index(parent, key, past_end=True)
            parent.insert(index, value)

    return _changed(doc, path, value, change, name)


def _remove(doc: Any, operation: Json) -> Any:
    path = _pointer(operation, "path")
    return _changed(doc, path, None, _delete, "remove")


def _delete(parent: Any, key: str) -> None:
    if isinstance(parent, dict):
        if key not in parent:
            raise inapplicable(f"Unable to remove nonexistent key: {key}: missing value")
        del parent[key]
    else:
        del parent[_index(parent, key)]


def _replace(doc: Any, operation: Json) -> Any:
    path, value = _pointer(operation, "path"), _value(operation)

    def change(parent: Any, key: str) -> None:
        if isinstance(parent, dict):
            # The reference makes no difference between what is there and what is not.
            parent[key] = value
        else:
            parent[_index(parent, key)] = value

    return _changed(doc, path, value, change, "replace")


def _move(doc: Any, operation: Json) -> Any:
    source, path = _pointer(operation, "from"), _pointer(operation, "path")
    value = _found(doc, source, "move")
    if path == source:
        return doc
    if path.startswith(f"{source}/"):
        raise inapplicable(f"move operation does not apply: {path} lies inside {source}")
    return _put(_changed(doc, source, None, _delete, "move"), path, value, "move")


def _copy(doc: Any, operation: Json, before: int) -> tuple[Any, int]:
    """Return the document with a copy in it, and how many bytes of JSON all copies are by now.

    Raises:
        PatchError: when they are too many; the last is not made.
    """
    source, path = _pointer(operation, "from"), _pointer(operation, "path")
    data = _encode(_found(doc, source, "copy"))
    copied = before + len(data)
    if copied > MAX_COPIED:
        raise too_costly(
            "Unable to complete the copy, the accumulated size increase of copy is "
            f"{copied}, exceeding the limit {MAX_COPIED}"
        )
    return _put(doc, path, _decode(data), "copy"), copied


def _test(doc: Any, operation: Json) -> Any:
    path = _pointer(operation, "path")
    expected = operation.get("value")
    found = _lookup(doc, path)
    if found is _ABSENT and expected is not None:
        raise inapplicable(f"test operation does not apply: is missing path: {path}: missing value")
    if found is not _ABSENT and not _same(found, expected):
        raise inapplicable(f"testing value {path} failed: test failed")
    return doc


_HANDLERS: Final[dict[str, Callable[[Any, Json], Any]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "test": _test,
}


def _same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; unlike Python's, ``True`` is not ``1`` here."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _pointer(operation: Json, member: str) -> str:
    path = operation.get(member)
    if not isinstance(path, str):
        text = (
            "operation missing path field" if member == "path" else "operation, missing from field"
        )
        raise inapplicable(f"{text}: missing value")
    if path and not path.startswith("/"):
        raise inapplicable(
            f'{operation["op"]} operation does not apply: doc is missing path: "{path}": '
            "missing value"
        )
    return path


def _value(operation: Json) -> Any:
    if "value" not in operation:
        raise inapplicable("operation, missing value field: missing value")
    return operation["value"]


def _tokens(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _index(parent: list[Any], key: str, *, past_end: bool = False) -> int:
    if not (key.isascii() and key.isdigit()) or (key[0] == "0" and key != "0"):
        raise inapplicable(f"value was not a proper array index: '{key}': invalid syntax")
    index = int(key)
    if index >= len(parent) + past_end:
        raise inapplicable(f"Unable to access invalid index: {index}: invalid index referenced")
    return index


def _lookup(doc: Any, path: str) -> Any:
    value = doc
    for token in _tokens(path):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list):
            value = value[_index(value, token)]
        else:
            return _ABSENT
    return value


def _found(doc: Any, path: str, name: str) -> Any:
    value = _lookup(doc, path)
    if value is _ABSENT:
        raise inapplicable(
            f"{name} operation does not apply: doc is missing from path: {path}: missing value"
        )
    return value


def _changed(doc: Any, path: str, whole: Any, change: _Change, name: str) -> Any:
    """Return the document with one place changed, in place."""
    tokens = _tokens(path)
    if not tokens:
        return whole
    parent = doc
    for token in tokens[:-1]:
        key: Any = token
        if isinstance(parent, list):
            key = _index(parent, token)
        elif not isinstance(parent, dict) or token not in parent:
            raise _missing(name, path)
        parent = parent[key]
    if not isinstance(parent, dict | list):
        raise _missing(name, path)
    change(parent, tokens[-1])
    return doc


def _missing(name: str, path: str) -> PatchError:
    return inapplicable(
        f'{name} operation does not apply: doc is missing path: "{path}": missing value'
    )
