"""Who changed what, from where: one ``audit.k8s.io/v1`` event a line, as Kubernetes writes them.

Changes by users and their programs are written, at the level ``Metadata``. Reads, and what
Lockstep's own parts write by themselves all the time, are not.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from lockstep.api import timestamp
from lockstep.apiserver.auth.bootstrap import COMPONENT_USERS
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.routes import Route
from lockstep.http import Request
from lockstep.keys.files import append_private

logger = logging.getLogger(__name__)

LARGEST: Final = 16 << 20
"""Bytes at which a new file is begun; one older file is kept."""
_CHANGES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_PARTS: Final = frozenset(COMPONENT_USERS.values())
_REVIEWS: Final = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
"""Groups in which creating asks a question and changes nothing."""


class _Meta(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class AuditLog:
    """The file, or nothing where none is wanted."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock

    def note(self, request: Request, user: User, route: Route, code: int) -> None:
        """Write down how a request was answered, if it is a change by a user."""
        if self._path is None or user.name in _PARTS or not _changes(request.verb, route):
            return
        event = _event(request, user, route, code, timestamp.show(self._clock()))
        try:
            append_private(self._path, msgspec.json.encode(event), most=LARGEST)
        except OSError as error:
            # The change is done: refusing its answer would only hide that.
            logger.error("audit: %s by %s is not on record: %s", request.verb, user.name, error)


def _changes(verb: str, route: Route) -> bool:
    return verb in _CHANGES and route.group not in _REVIEWS and route.subresource != "proxy"


def _event(request: Request, user: User, route: Route, code: int, moment: str) -> dict[str, Any]:
    about = {
        "resource": route.plural,
        "namespace": route.namespace,
        "name": route.name or _name_in(request),
        "apiGroup": route.group,
        "apiVersion": route.version,
        "subresource": route.subresource,
    }
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": request.path[:500],
        "verb": request.verb,
        "user": {"username": user.name, "groups": list(user.groups)},
        "sourceIPs": [request.peer.address],
        "userAgent": request.headers.get("user-agent", "")[:300],
        "objectRef": {key: text for key, text in about.items() if text},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": moment,
    }


def _name_in(request: Request) -> str:
    """Return the name of what is created; empty where the body is no JSON."""
    with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError):
        return msgspec.json.decode(request.body, type=_Named).metadata.name
    return ""
