"""Reading request bodies: JSON, YAML or Kubernetes' protobuf, one object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import msgspec

from lockstep.api.wire import Json
from lockstep.apiserver.go_json import syntax_error, type_name
from lockstep.apiserver.status import StatusError, bad_request, unsupported_media_type
from lockstep.apiserver.store import Unstorable, require_few_values
from lockstep.http import Request

_JSON = "application/json"
_YAML = ("application/yaml", "application/apply-patch+yaml")
_PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = (_JSON, "application/yaml", _PROTOBUF)
_SHOWN = 30
_AHEAD = 32 << 10
"""Bytes from which on reading a body of a slow format would hold up other requests."""
_TOO_DEEP = "exceeded max depth"
_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)

_decode = msgspec.json.Decoder().decode


class Malformed(Exception):
    """A body that cannot be read at all; the text says why."""


def media_type(request: Request) -> str:
    """Return the body's content type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_ahead(request: Request) -> None:
    """Read a body in a thread where its format takes long to read.

    The other functions of this module then find what it says, or why it cannot be read.
    """
    if len(request.body) < _AHEAD:
        return
    kind = media_type(request)
    if kind == _PROTOBUF:
        request.parsed = await asyncio.to_thread(_outcome, from_protobuf, request.body)
    elif kind in _YAML:
        request.parsed = await asyncio.to_thread(_outcome, _read_yaml, request.body)


async def read_again(request: Request) -> None:
    """Read the body ahead anew: what was read before may have been changed since."""
    request.parsed = None
    await read_ahead(request)


def _outcome(read: Callable[[bytes], Any], body: bytes) -> Callable[[], Any]:
    try:
        value = read(body)
        require_few_values(value, body)
    except (Malformed, StatusError, Unstorable) as error:
        return partial(_raise, error)
    return lambda: value


def _raise(error: Exception) -> NoReturn:
    raise error


def read_object(request: Request, kind: str) -> Json:
    """Return the object in the body, which is to be of *kind*.

    Raises:
        StatusError: when there is none or it cannot be read.
    """
    try:
        return _object(request)
    except Malformed as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): {error} "
            f"({summary(request.body)})"
        ) from None


def read_delete_options(request: Request) -> Json:
    """Return the ``DeleteOptions`` in the body of a deletion.

    Raises:
        StatusError: when the body cannot be read, or is something else.
    """
    try:
        options = _object(request)
    except Malformed as error:
        raise bad_request(str(error)) from None
    version, kind = options.get("apiVersion", ""), options.get("kind", "")
    if kind not in ("", "DeleteOptions"):
        raise bad_request(not_registered(version, kind))
    return options


def not_registered(version: str, kind: str) -> str:
    """Return what Kubernetes says of a kind that it has not under that ``apiVersion``."""
    return (
        f'no kind "{kind}" is registered for version "{version}" in scheme '
        '"pkg/runtime/scheme.go:111"'
    )


def _object(request: Request) -> Json:
    kind = media_type(request)
    if kind == _PROTOBUF:
        decoded: Json = _read(request, from_protobuf)
        return decoded
    if kind in _YAML:
        value = _read(request, _read_yaml)
    elif kind in (_JSON, "", "*/*", "text/plain"):
        value = _load_json(request.body)
    else:
        raise unsupported_media_type(ACCEPTED)
    if value is None:
        return {}
    require_few_values(value, request.body)
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {type_name(value)} into Go value of type {_TYPE_META}"
        raise Malformed(f"couldn't get version/kind; json parse error: {why}")
    return value


def _load_json(body: bytes) -> Any:
    try:
        return _decode(body)
    except RecursionError:
        raise Malformed(f"couldn't get version/kind; json parse error: {_TOO_DEEP}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        why = _why_not_json(body)
        raise Malformed(f"couldn't get version/kind; json parse error: {why}") from None


def _why_not_json(body: bytes) -> str:
    if len(body) > _AHEAD:
        # To find the place as Go does takes seconds in a large body.
        return "invalid JSON"
    try:
        return syntax_error(body)
    except RecursionError:
        return _TOO_DEEP
    except ValueError as error:
        # Go reads more than JSON allows, such as halves of surrogate pairs.
        return str(error)


def summary(body: bytes) -> str:
    """Return the beginning of a body as messages show it."""
    if not body:
        return "<empty>"
    shown = body[:_SHOWN]
    text = shown.decode(errors="replace") if body[:1] == b"{" else shown.hex()
    return f"{text} ..." if len(body) > _SHOWN else text


def read_patch(body: bytes, *, prefix: str = "") -> Any:
    """Return the JSON value in the body of a patch.

    Raises:
        StatusError: when it is not JSON; *prefix* begins the message.
    """
    try:
        patch = _decode(body)
    except RecursionError:
        raise bad_request(f"{prefix}{_TOO_DEEP}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise bad_request(f"{prefix}{_why_not_json(body)}") from None
    require_few_values(patch, body)
    return patch


def from_protobuf(body: bytes) -> Json:
    """Return the built-in object that *body* holds in Kubernetes' protobuf envelope.

    Raises:
        StatusError: when it holds none.
    """
    from lockstep.apiserver.protobuf import NotProtobuf, decode

    try:
        return decode(body)
    except NotProtobuf as error:
        raise bad_request(str(error)) from None


def read_applied(request: Request) -> Json:
    """Return the configuration in the body, which is YAML (or JSON, which is YAML).

    Raises:
        StatusError: when it holds none.
    """
    try:
        value = _read(request, _read_yaml)
    except Malformed as error:
        raise _undecodable(f"error converting YAML to JSON: {error}") from None
    if value is None:
        return {}
    require_few_values(value, request.body)
    if not isinstance(value, dict):
        _refuse(value)
    return value


def require_unique_keys(request: Request) -> None:
    """Require that no mapping of a configuration in YAML has a key twice.

    Raises:
        StatusError: when one has, with the lines of all of them.
    """
    if request.body.lstrip()[:1] == b"{":
        return
    from lockstep.apiserver.yaml_bodies import repeated_keys

    if found := repeated_keys(request.body):
        lines = "".join(f"\n  {one}" for one in found)
        why = f"error converting YAML to JSON: yaml: unmarshal errors:{lines}"
        raise bad_request(f"error strict decoding YAML: {why}")


def _undecodable(why: str) -> StatusError:
    return bad_request(f"error decoding YAML: {why}")


def _refuse(value: Any) -> NoReturn:
    why = f"cannot unmarshal {type_name(value)} into Go value of type map[string]interface {{}}"
    raise _undecodable(f"error unmarshaling JSON: while decoding JSON: json: {why}")


def _read(request: Request, read: Callable[[bytes], Any]) -> Any:
    return read(request.body) if request.parsed is None else request.parsed()


def _read_yaml(body: bytes) -> Any:
    try:
        return _decode(body)
    except RecursionError:
        raise Malformed(f"yaml: {_TOO_DEEP}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        from lockstep.apiserver.yaml_bodies import NotYaml, load

        try:
            return load(body)
        except NotYaml as error:
            raise Malformed(str(error)) from None
