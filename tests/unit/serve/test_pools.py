"""InferencePools: which pods become backends, which stay with their service."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import PODS, AnyObject, Pod
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL
from lockstep.api.serving import ROUTES
from lockstep.runtime.actions import Change, Create
from lockstep.serve.core.pools import SeenPool, decide_pool

OURS = {ROUTE_LABEL: "pool", REVISION_LABEL: "pool"}
SPEC = {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]}


def pool(**spec: Any) -> AnyObject:
    meta = ObjectMeta(name="pool", namespace="n", uid="u")
    return AnyObject(metadata=meta, kind="InferencePool", spec={**SPEC, **spec})


def pod(name: str, **labels: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="n", uid=name, labels=labels))


@pytest.mark.parametrize(
    ("labels", "patched"),
    [
        ({"app": "vllm"}, "pool"),
        ({"app": "vllm", **OURS}, None),
        ({"app": "other"}, None),
        ({"app": "other", **OURS}, "taken off"),
        ({"app": "vllm", ROUTE_LABEL: "service", REVISION_LABEL: "r"}, None),
    ],
)
def test_pods_of_the_selector_become_backends(labels: dict[str, str], patched: str | None) -> None:
    _, actions = decide_pool(SeenPool(pool(), [pod("p", **labels)]), 0.0)
    found = [one for one in actions if isinstance(one, Change) and one.resource is PODS]
    given = [one.patch["metadata"]["labels"][ROUTE_LABEL] or "taken off" for one in found]
    assert given == ([patched] if patched else [])


def test_a_pool_is_a_route_that_chooses_by_prefix() -> None:
    status, [route, *_] = decide_pool(SeenPool(pool(), [pod("p", app="vllm")]), 0.0)
    assert isinstance(route, Create)
    assert route.resource is ROUTES
    spec = route.body["spec"]
    assert spec["backends"] == [{"revision": "pool", "port": 8000}]
    assert spec["choice"] == "prefix"
    [parent] = status["parents"]
    assert {one["type"]: one["status"] for one in parent["conditions"]} == {
        "Accepted": "True",
        "ResolvedRefs": "True",
    }


@pytest.mark.parametrize(
    ("spec", "labels", "says"),
    [
        ({"targetPorts": []}, {"app": "vllm"}, "targetPorts"),
        ({"selector": {}}, {"app": "vllm"}, "matchLabels"),
        ({}, {"app": "other"}, "no pod has the labels"),
        ({}, {"app": "vllm", ROUTE_LABEL: "s"}, "left to it"),
    ],
)
def test_a_pool_without_backends_says_why(
    spec: dict[str, Any], labels: dict[str, str], says: str
) -> None:
    status, _ = decide_pool(SeenPool(pool(**spec), [pod("p", **labels)]), 0.0)
    messages = [one.get("message", "") for one in status["parents"][0]["conditions"]]
    assert any(says in one for one in messages)
