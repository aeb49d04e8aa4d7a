"""Reading request bodies: JSON, YAML or Kubernetes' protobuf, one object."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from lockstep.apiserver.http import Request
from lockstep.apiserver.status import StatusError, bad_request, unsupported_media_type

Json = dict[str, Any]

_JSON = "application/json"
_YAML = ("application/yaml", "application/apply-patch+yaml")
_PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = (_JSON, "application/yaml", _PROTOBUF)

_decode = msgspec.json.Decoder().decode


def media_type(request: Request) -> str:
    """Return the body's content type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_object(request: Request) -> Json:
    """Return the object in the body.

    Raises:
        StatusError: when there is none or it cannot be read.
    """
    if not request.body:
        raise bad_request("the body of the request is empty")
    kind = media_type(request)
    if kind in _YAML:
        return from_yaml(request.body)
    if kind == _PROTOBUF:
        return from_protobuf(request.body)
    if kind not in (_JSON, "", "*/*", "text/plain"):
        raise unsupported_media_type(kind, ACCEPTED)
    value = read_json(request.body)
    if not isinstance(value, dict):
        raise bad_request("the body of the request is not an object")
    return value


def read_json(body: bytes) -> Any:
    """Return the JSON value in *body*.

    Raises:
        StatusError: when it is not JSON.
    """
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body of the request is not valid JSON: {error}") from None


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


def from_yaml(body: bytes) -> Json:
    """Return the object that *body* holds as YAML (or JSON, which is YAML).

    Raises:
        StatusError: when it holds none.
    """
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _load_yaml(body)
    if not isinstance(value, dict):
        raise bad_request("error decoding YAML: the document is not an object")
    return cast(Json, value)


def _load_yaml(body: bytes) -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Safe, and times stay text, as they are in JSON."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(body, Loader)  # noqa: S506  # a safe loader, see above
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StatusError(400, "BadRequest", f"error decoding YAML: {error}") from None
