"""Content negotiation: which representation an ``Accept`` header asks for.

As in Kubernetes, the clauses are tried in the order of their weights, and the first that the
endpoint can serve is taken: whole objects of built-in kinds in JSON, YAML or protobuf, those of
CRDs in JSON or YAML, metadata in all three, tables in JSON or YAML, watches not in YAML.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from lockstep.apiserver.catalog import Served
from lockstep.apiserver.status import StatusError, not_acceptable, only_these
from lockstep.http import Request, Response

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MADE: Final = (JSON, YAML, PROTOBUF)
_STREAMED: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_FAILED: Final = 400
_META: Final = ("v1", "v1beta1")
_METADATA: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
_SMALL = 16 << 10
"""Bytes of JSON that are written in another form on the event loop."""


class Accept(NamedTuple):
    """One acceptable media type and the parameters that choose a representation."""

    type: str
    as_: str = ""
    group: str = ""
    version: str = ""
    stream: str = ""
    weight: float = 1.0

    @property
    def converts(self) -> bool:
        """Whether it asks for another kind than the object's own."""
        return bool(self.as_ or self.group or self.version)


Allows = Callable[[str, Accept], bool]
"""Says whether an endpoint serves a clause in a media type."""

_ANY: Final = Accept("*/*")


@lru_cache(maxsize=256)
def parse_accept(header: str) -> tuple[Accept, ...]:
    """Return the clauses of *header*, the best first: by weight, then the more specific."""
    found = [clause for part in header.split(",") if (clause := _clause(part)) is not None]
    found.sort(key=lambda c: (-c.weight, c.type == "*/*", c.type.endswith("/*")))
    return tuple(found)


def _clause(part: str) -> Accept | None:
    name, *parameters = (piece.strip() for piece in part.split(";"))
    if name == "*":
        name = "*/*"
    if name.count("/") != 1 or name.endswith("/"):
        return None
    values = dict(p.partition("=")[::2] for p in parameters)
    try:
        weight = float(values.get("q") or 1.0)
    except ValueError:
        weight = 0.0
    return Accept(
        name,
        values.get("as", ""),
        values.get("g", ""),
        values.get("v", ""),
        values.get("stream", ""),
        weight,
    )


def choose(header: str, allows: Allows) -> Accept | None:
    """Return the first clause that is served, with the media type that it is served in."""
    if not header:
        return _ANY._replace(type=JSON)
    for clause in parse_accept(header):
        for made in _MADE:
            if clause.type not in (made, "application/*", "*/*"):
                continue
            if clause.stream in ("", "watch") and allows(made, clause):
                return clause._replace(type=made)
    return None


def _builtin(made: str, clause: Accept) -> bool:
    return not clause.converts or _converted(made, clause)


def _custom(made: str, clause: Accept) -> bool:
    return _converted(made, clause) if clause.converts else made != PROTOBUF


def _converted(made: str, clause: Accept) -> bool:
    if clause.group != "meta.k8s.io" or clause.version not in _META:
        return False
    return clause.as_ in _METADATA or (clause.as_ == "Table" and made != PROTOBUF)


def _plain(_made: str, clause: Accept) -> bool:
    return not clause.converts


def accepted(request: Request, served: Served, *, stream: bool = False) -> Accept:
    """Return the form in which the client wants objects of *served*.

    Raises:
        StatusError: when it takes none of those that are made (406).
    """
    found = _of_resource(request.headers.get("accept", ""), custom=served.custom)
    if found is None or (stream and found.type == YAML):
        raise _refusal(request, served, stream=stream)
    return found


@lru_cache(maxsize=256)
def _of_resource(header: str, *, custom: bool) -> Accept | None:
    return choose(header, _custom if custom else _builtin)


def _refusal(request: Request, served: Served, *, stream: bool) -> StatusError:
    clauses = parse_accept(request.headers.get("accept", ""))
    if served.custom or any(clause.type in (*_MADE, "*/*") for clause in clauses):
        return only_these(_STREAMED if stream else _MADE)
    return not_acceptable(_MADE)


def require_as_it_is(request: Request) -> None:
    """Require that a client takes an answer that is not stored, and has no table, as it is.

    Raises:
        StatusError: when it does not (406).
    """
    if choose(request.headers.get("accept", ""), _plain) is None:
        raise only_these(_MADE)


@lru_cache(maxsize=256)
def _of_document(header: str) -> str:
    found = choose(header, _plain)
    return found.type if found else JSON


async def in_accepted_type(request: Request, response: Response) -> Response:
    """Return a *response* that is JSON in the media type that the client would rather have.

    A large one is written in a thread, for that takes long. What has no protobuf form stays JSON.
    """
    if response.content_type != JSON or not response.body or "accept" not in request.headers:
        return response
    made = request.wanted if response.status < _FAILED else ""
    made = made or _of_document(request.headers["accept"])
    if made == JSON:
        return response
    write = _yaml if made == YAML else in_protobuf
    if len(response.body) < _SMALL:
        body = write(response.body)
    else:
        body = await asyncio.to_thread(write, response.body)
    if body is None:
        return response
    return Response(response.status, body, made, response.headers)


def _yaml(body: bytes) -> bytes:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(msgspec.json.decode(body), Dumper=dumper)
    return text.encode()


def in_protobuf(body: bytes) -> bytes | None:
    """Return JSON in protobuf, or None where its kind has no such form."""
    from lockstep.apiserver.protobuf import NotProtobuf, encode

    obj = msgspec.json.decode(body)
    if not isinstance(obj, dict):
        return None
    try:
        # The core group's list of resources is older than the habit of naming the version.
        return encode({"apiVersion": "v1", "kind": "", **obj})
    except NotProtobuf:
        return None
