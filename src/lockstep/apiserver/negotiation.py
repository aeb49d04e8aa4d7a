"""Content negotiation: which representation an ``Accept`` header asks for."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from lockstep.apiserver.catalog import Served
from lockstep.apiserver.http import Request, Response
from lockstep.apiserver.status import not_acceptable


class Accept(NamedTuple):
    """One acceptable media type and the parameters that choose a representation."""

    type: str
    as_: str = ""
    group: str = ""
    version: str = ""


_PROTOBUF = "application/vnd.kubernetes.protobuf"
_JSON = Accept("application/json")
_TYPES = {
    "application/json": "application/json",
    "application/*": "application/json",
    "*/*": "application/json",
    "application/yaml": "application/yaml",
}


@lru_cache(maxsize=256)
def parse_accept(header: str) -> tuple[Accept, ...]:
    """Return what *header* accepts and the server can make, the first choice first.

    Protobuf, which clients of the official libraries ask for, is passed over: they name JSON
    next, and take it where they do not.
    """
    found: list[Accept] = []
    for part in header.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        made = _TYPES.get(name.lower())
        if made is None:
            continue
        values = dict(p.partition("=")[::2] for p in parameters)
        found.append(Accept(made, values.get("as", ""), values.get("g", ""), values.get("v", "")))
    return tuple(found) or (_JSON,)


def accepted(request: Request) -> tuple[Accept, ...]:
    """Return what the client accepts, the first choice first."""
    return parse_accept(request.headers.get("accept", ""))


def require_acceptable(request: Request, served: Served) -> None:
    """Require that the client takes one of the forms in which objects are made.

    Raises:
        StatusError: when it takes none (406).
    """
    header = request.headers.get("accept", "")
    if header and not _is_acceptable(header):
        made = ("application/json", "application/yaml")
        raise not_acceptable(made if served.custom else (*made, _PROTOBUF))


@lru_cache(maxsize=256)
def _is_acceptable(header: str) -> bool:
    names = (part.partition(";")[0].strip().lower() for part in header.split(","))
    return any(name in _TYPES or name.startswith(_PROTOBUF) for name in names)


def wants_yaml(request: Request) -> bool:
    """Return whether the client would rather have YAML."""
    return "yaml" in request.headers.get("accept", "") and accepted(request)[0].type.endswith(
        "/yaml"
    )


def as_yaml(response: Response) -> Response:
    """Return a JSON *response* as YAML."""
    import yaml

    text = yaml.safe_dump(msgspec.json.decode(response.body))
    return Response(response.status, text.encode(), "application/yaml", response.headers)
