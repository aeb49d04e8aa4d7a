"""What belongs to the server itself: discovery, version, health, metrics."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from typing import Final

from lockstep import __version__
from lockstep.api.wire import Json, encode
from lockstep.apiserver import discovery, status
from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.catalog import Catalog
from lockstep.apiserver.negotiation import JSON, YAML, Accept, choose, in_protobuf
from lockstep.apiserver.openapi import Definition, OpenApi
from lockstep.http import Request, Response

_TEXT = "text/plain; charset=utf-8"
# The release whose API is served; clients compare their own with it.
MAJOR, MINOR = "1", "36"
_AGGREGATED: Final = "APIGroupDiscoveryList"
_V2_PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# A Document whose one field says "swagger: 2.0".
_V2_PROTOBUF = b"\x0a\x032.0"


def version() -> Response:
    """Answer ``/version``."""
    return Response(
        body=encode(
            {
                "major": MAJOR,
                "minor": MINOR,
                "gitVersion": f"v{MAJOR}.{MINOR}.0+lockstep-{__version__}",
                "gitCommit": "",
                "gitTreeState": "clean",
                "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": f"python{platform.python_version()}",
                "compiler": platform.python_implementation(),
                "platform": f"{platform.system().lower()}/{platform.machine()}",
            }
        )
    )


def open_api_v2(request: Request) -> Response:
    """Answer ``/openapi/v2`` with a document that describes nothing.

    Clients that read version 3 still ask for it before they say that a kind is unknown.
    """
    if "proto" in request.headers.get("accept", ""):
        return Response(body=_V2_PROTOBUF, content_type=_V2_PROTOBUF_TYPE)
    info = {"title": "Kubernetes", "version": f"v{MAJOR}.{MINOR}.0"}
    return Response(body=encode({"swagger": "2.0", "info": info, "paths": {}}))


class Health:
    """The checks behind ``/livez``, ``/readyz`` and ``/healthz``."""

    def __init__(self) -> None:
        self._checks: dict[str, Callable[[], bool]] = {"ping": lambda: True}

    def add(self, name: str, check: Callable[[], bool]) -> None:
        """Let *check* decide, too."""
        self._checks[name] = check

    def answer(self, request: Request) -> Response:
        """Answer a health request: of all checks, or of the one that the path names."""
        endpoint, _, one = request.path.strip("/").partition("/")
        if one and one not in self._checks:
            raise status.page_not_found()
        excluded = request.query.get("exclude", "")
        names = [one] if one else [name for name in self._checks if name != excluded]
        results = {name: self._checks[name]() for name in names}
        healthy = all(results.values())
        if healthy and "verbose" not in request.query:
            return Response(200, b"ok", _TEXT)
        lines = [
            f"[+]{name} ok" if good else f"[-]{name} failed: reason withheld"
            for name, good in results.items()
        ]
        lines.append(f"{endpoint} check {'passed' if healthy else 'failed'}")
        return Response(200 if healthy else 500, "\n".join([*lines, ""]).encode(), _TEXT)


class OpenApiDocuments:
    """Answers ``/openapi/v3`` for what is served at present."""

    def __init__(self, catalog: Catalog, reviews: list[Kind]) -> None:
        self._catalog = catalog
        self._reviews = [Definition(kind) for kind in reviews]
        self._made_for = -1
        self._documents: OpenApi

    def answer(self, request: Request) -> Response | None:
        """Answer with the index or a document, or None when *request* asks for neither."""
        if self._made_for != self._catalog.changes:
            self._documents = OpenApi([s.definition for s in self._catalog] + self._reviews)
            self._made_for = self._catalog.changes
        path = request.path.strip("/").removeprefix("openapi/v3").strip("/")
        if not path:
            return Response(body=self._documents.index())
        found = self._documents.document(path)
        if found is None:
            return None
        body, digest = found
        etag = f'"{digest}"'
        if request.headers.get("if-none-match") == etag:
            return Response(304, headers=[("ETag", etag)])
        return Response(body=body, headers=[("ETag", etag)])


class Discovery:
    """Answers what is served, from documents made once for each change of the catalogue."""

    def __init__(self, catalog: Catalog, reviews: list[Kind], address: str) -> None:
        self._catalog = catalog
        self._reviews = reviews
        self._address = address
        self._made_for = -1
        self._documents: dict[tuple[str, str], bytes] = {}

    def answer(self, request: Request) -> Response | None:
        """Answer a discovery request, or None when *request* is none."""
        parts = request.path.strip("/").split("/")
        if parts[0] not in ("api", "apis") or len(parts) > 3:
            return None
        as_, type_ = self._aggregated(request) if len(parts) == 1 else ("", JSON)
        if self._made_for != self._catalog.changes:
            self._documents.clear()
            self._made_for = self._catalog.changes
        key = "/".join(parts), as_
        body = self._documents.get(key)
        if body is None:
            document = self._make(parts, as_)
            if document is None:
                return None
            body = self._documents[key] = encode(document)
        if not as_:
            return Response(body=body)
        if type_ != JSON:
            body = in_protobuf(body) or body
        # Clients keep the document, and ask whether it is still the same.
        etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = [("Vary", "Accept"), ("ETag", etag), ("Cache-Control", "public")]
        if request.headers.get("if-none-match") == etag:
            return Response(304, content_type="", headers=headers)
        kind = f"{type_};g=apidiscovery.k8s.io;v={as_};as={_AGGREGATED}"
        return Response(body=body, content_type=kind, headers=headers)

    def _aggregated(self, request: Request) -> tuple[str, str]:
        """Return the version of the aggregated form that is asked for, and its media type."""
        found = choose(request.headers.get("accept", ""), _allows)
        return (found.version, found.type) if found and found.converts else ("", JSON)

    def _make(self, parts: list[str], as_: str) -> Json | None:
        kinds = [served.kind for served in self._catalog] + self._reviews
        match parts:
            case ["api"] | ["apis"] if as_:
                return discovery.group_discovery(kinds, legacy=parts[0] == "api", version=as_)
            case ["api"]:
                return discovery.api_versions(self._address)
            case ["apis"]:
                return discovery.api_group_list(kinds)
            case ["api", "v1"]:
                return discovery.api_resource_list(kinds, "", "v1")
            case ["apis", group]:
                return discovery.api_group(kinds, group)
            case ["apis", group, version_]:
                return discovery.api_resource_list(kinds, group, version_)
        return None


def _allows(made: str, clause: Accept) -> bool:
    """Return whether a clause asks for discovery in its aggregated form."""
    return (
        made != YAML
        and clause.group == "apidiscovery.k8s.io"
        and (clause.as_, clause.version in ("v2", "v2beta1")) == (_AGGREGATED, True)
    )
