"""From a path and a method to what is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_READS = frozenset({"GET", "HEAD"})
_ROOTS = {"api": 1, "apis": 2}


@dataclass(frozen=True, slots=True)
class Route:
    """A path under ``/api`` or ``/apis`` that names a resource."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    watched: bool = False
    """Whether it is one of the older paths, which begin with ``watch/``."""
    """What follows the subresource, as in ``proxy/PATH``."""


@lru_cache(maxsize=256)
def resource_route(path: str) -> Route | None:
    """Return what *path* names, or None when it is no path of a resource."""
    parts = path.strip("/").split("/")
    width = _ROOTS.get(parts[0])
    # What follows "proxy" is a path of a pod's own, in which steps may be empty.
    own_parts = parts[:7] if parts[6:7] == ["proxy"] else parts
    if width is None or len(parts) <= width + 1 or "" in own_parts:
        return None
    group, version = ("", parts[1]) if width == 1 else (parts[1], parts[2])
    rest = parts[width + 1 :]
    watched = rest[0] == "watch" and len(rest) > 1
    if watched:
        rest = rest[1:]
    namespace = ""
    # /namespaces/NS/status and /namespaces/NS/finalize are subresources of the namespace itself.
    own = len(rest) == 3 and rest[2] in ("status", "finalize")
    if rest[0] == "namespaces" and len(rest) > 2 and not own:
        namespace = rest[1]
        rest = rest[2:]
    return Route(
        group,
        version,
        rest[0],
        namespace,
        rest[1] if len(rest) > 1 else "",
        rest[2] if len(rest) > 2 else "",
        "/".join(rest[3:]),
        watched,
    )


def verb_of(method: str, route: Route, *, watch: bool) -> str:
    """Return the API verb, as RBAC knows it."""
    if method in _READS:
        if route.watched:
            return "watch"
        if not route.name:
            return "watch" if watch else "list"
        return "get"
    if method == "DELETE":
        return "delete" if route.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, "")
