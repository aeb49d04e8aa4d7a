"""A request together with what it is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec

from lockstep.api.wire import Json
from lockstep.apiserver.auth.access import require
from lockstep.apiserver.auth.escalation import Target, check_grant
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.auth.rbac import GROUP, Rbac
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.bodies import media_type
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.frames import InFrames
from lockstep.apiserver.handlers.options import write_options
from lockstep.apiserver.negotiation import PROTOBUF, accepted
from lockstep.apiserver.objects import Result, WriteOptions
from lockstep.apiserver.representation import MetadataOnly, Representation, Whole
from lockstep.apiserver.routes import Route
from lockstep.apiserver.status import bad_request
from lockstep.apiserver.store import Key, Record
from lockstep.apiserver.table import TableOf
from lockstep.http import Request, Response
from lockstep.http.message import read_query

_WARNED = 4096
"""Characters of all warnings of one answer, as in Kubernetes."""
_WARNINGS = 50
APPLY = "application/apply-patch+yaml"
_INCLUDED = ("Metadata", "Object", "None")
_OPTIONS = {"update": "UpdateOptions", "patch": "PatchOptions"}


@dataclass(slots=True)
class Call:
    """A request for a resource."""

    request: Request
    route: Route
    verb: str
    served: Served
    user: User
    rbac: Rbac

    def require_grant(self, new: Json, old: Json | None = None) -> None:
        """Let a role or a binding pass if it grants nothing that the user lacks.

        Raises:
            StatusError: when it would.
        """
        if self.served.kind.group == GROUP:
            route = self.route
            target = Target(route.plural, route.namespace, route.name if old else "")
            check_grant(self.rbac, self.user, target, new, old)

    def require_creation(self) -> None:
        """Let an apply pass that creates its object: that takes more than the verb ``patch``.

        Raises:
            StatusError: when the user may not create it.
        """
        kind, route = self.served.kind, self.route
        wish = Attributes(
            "create",
            kind.group,
            kind.version,
            kind.plural,
            namespace=route.namespace,
            name=route.name,
        )
        require(self.rbac, self.user, wish)

    def representation(self) -> Representation:
        """Return the form that the client wants objects in, as JSON."""
        accept = accepted(self.request, self.served)
        if accept.as_ == "Table":
            return TableOf(self.served, self._included())
        return MetadataOnly(self.served) if accept.as_ else Whole(self.served)

    def shown(self, data: bytes) -> bytes:
        """Return an object that was written in the form that the client wants."""
        form = self.representation()
        if isinstance(form, Whole):
            return data
        meta = msgspec.json.decode(data)["metadata"]
        key = Key(self.served.storage, self.route.namespace, meta["name"])
        return form.one(Record(key, int(meta.get("resourceVersion") or 0), data))

    def streamed(self) -> Representation:
        """Return the form that the client wants the objects of a watch in."""
        form = self.representation()
        return InFrames(form) if self.request.wanted == PROTOBUF else form

    def _included(self) -> str:
        include = self.request.query.get("includeObject") or "Metadata"
        if include not in _INCLUDED:
            raise bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"\"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            )
        return include

    def options(self) -> WriteOptions:
        """Return the options of a write.

        Raises:
            StatusError: when one of them has a value that it cannot have.
        """
        options = _options(
            self.request.raw_query,
            self.request.headers.get("user-agent", ""),
            _OPTIONS.get(self.verb, "CreateOptions"),
            applies=media_type(self.request) == APPLY and self.verb == "patch",
        )
        return replace(options, user=self.user)


@lru_cache(maxsize=64)
def _options(raw_query: str, agent: str, kind: str, *, applies: bool) -> WriteOptions:
    # A client asks for the same with every write.
    return write_options(read_query(raw_query), agent, kind=kind, applies=applies)


def warning_headers(warnings: list[str]) -> list[tuple[str, str]]:
    """Return the ``Warning`` headers that carry *warnings* (RFC 7234, code 299).

    Clients refuse heads that are too long, so of many only the first are told.
    """
    headers: list[tuple[str, str]] = []
    left = _WARNED
    for text in warnings:
        header = f'299 - "{_quoted(text)}"'
        left -= len(header)
        if left < 0 or len(headers) >= _WARNINGS:
            break
        headers.append(("Warning", header))
    return headers


def _quoted(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text)
    safe = printable.encode("ascii", "backslashreplace").decode()
    return safe.replace("\\", "\\\\").replace('"', '\\"')


def written(call: Call, result: Result, code: int = 200) -> Response:
    """Return the answer to a write."""
    return Response(code, call.shown(result.data), headers=warning_headers(result.warnings))
