"""Reading request bodies: JSON, YAML or Kubernetes' protobuf, one object."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from lockstep.apiserver.go_json import syntax_error, type_name
from lockstep.apiserver.http import Request
from lockstep.apiserver.status import StatusError, bad_request, unsupported_media_type

Json = dict[str, Any]

_JSON = "application/json"
_YAML = ("application/yaml", "application/apply-patch+yaml")
_PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = (_JSON, "application/yaml", _PROTOBUF)
_SHOWN = 30
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
        return from_protobuf(request.body)
    if kind in _YAML:
        value = _load_yaml(request.body)
    elif kind in (_JSON, "", "*/*", "text/plain"):
        value = _load_json(request.body)
    else:
        raise unsupported_media_type(ACCEPTED)
    if value is None:
        return {}
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {type_name(value)} into Go value of type {_TYPE_META}"
        raise Malformed(f"couldn't get version/kind; json parse error: {why}")
    return value


def _load_json(body: bytes) -> Any:
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        why = _why_not_json(body)
        raise Malformed(f"couldn't get version/kind; json parse error: {why}") from None


def _why_not_json(body: bytes) -> str:
    try:
        return syntax_error(body)
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
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise bad_request(f"{prefix}{_why_not_json(body)}") from None


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


def read_applied(body: bytes) -> Json:
    """Return the configuration that *body* holds as YAML (or JSON, which is YAML).

    Raises:
        StatusError: when it holds none.
    """
    try:
        value = _load_yaml(body)
    except Malformed as error:
        raise _undecodable(f"error converting YAML to JSON: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        _refuse(value)
    return value


def _undecodable(why: str) -> StatusError:
    return bad_request(f"error decoding YAML: {why}")


def _refuse(value: Any) -> NoReturn:
    why = f"cannot unmarshal {type_name(value)} into Go value of type map[string]interface {{}}"
    raise _undecodable(f"error unmarshaling JSON: while decoding JSON: json: {why}")


def _load_yaml(body: bytes) -> Any:
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        from lockstep.apiserver.yaml_bodies import NotYaml, load

        try:
            return load(body)
        except NotYaml as error:
            raise Malformed(str(error)) from None
