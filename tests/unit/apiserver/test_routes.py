"""From paths and headers to what is asked for."""

from __future__ import annotations

import pytest

from lockstep.apiserver.routes import Route, resource_route, verb_of

PATHS = [
    ("/api/v1/pods", Route("", "v1", "pods")),
    ("/api/v1/namespaces", Route("", "v1", "namespaces")),
    ("/api/v1/namespaces/x", Route("", "v1", "namespaces", name="x")),
    ("/api/v1/namespaces/x/status", Route("", "v1", "namespaces", "", "x", "status")),
    ("/api/v1/namespaces/x/finalize", Route("", "v1", "namespaces", "", "x", "finalize")),
    ("/api/v1/namespaces/x/pods", Route("", "v1", "pods", "x")),
    ("/api/v1/namespaces/x/pods/p", Route("", "v1", "pods", "x", "p")),
    ("/api/v1/namespaces/x/pods/p/log", Route("", "v1", "pods", "x", "p", "log")),
    ("/api/v1/nodes/n/proxy/a/b", Route("", "v1", "nodes", "", "n", "proxy", "a/b")),
    ("/apis/apps/v1/deployments", Route("apps", "v1", "deployments")),
    ("/apis/a.b/v1/namespaces/x/ts/t", Route("a.b", "v1", "ts", "x", "t")),
    ("/apis/apps/v1/deployments/", Route("apps", "v1", "deployments")),
    ("/api/v1", None),
    ("/api/v1/", None),
    ("/apis/apps", None),
    ("/apis/apps/v1", None),
    ("/api/v1//pods", None),
    ("/version", None),
    ("/", None),
]


@pytest.mark.parametrize(("path", "route"), PATHS)
def test_paths(path: str, route: Route | None) -> None:
    assert resource_route(path) == route


VERBS = [
    ("GET", "", False, "list"),
    ("GET", "", True, "watch"),
    ("GET", "n", False, "get"),
    ("HEAD", "n", False, "get"),
    ("POST", "", False, "create"),
    ("PUT", "n", False, "update"),
    ("PATCH", "n", False, "patch"),
    ("DELETE", "n", False, "delete"),
    ("DELETE", "", False, "deletecollection"),
]


@pytest.mark.parametrize(("method", "name", "watch", "verb"), VERBS)
def test_verbs(method: str, name: str, watch: bool, verb: str) -> None:
    assert verb_of(method, Route("", "v1", "pods", name=name), watch=watch) == verb
