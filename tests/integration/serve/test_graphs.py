"""InferenceGraphs through the router: each kind of node, conditions, failures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.routing import routing

Json = dict[str, Any]


def answers(word: str, status: int = 200) -> Any:
    return lambda path, body: (status, {"by": word, "path": path, "got": json.loads(body)})


def node(kind: str, *steps: Json) -> Json:
    return {"routerType": kind, "steps": list(steps)}


HARD = {"dependency": "Hard"}
CASES: list[tuple[str, dict[str, Json], Json, int, Any]] = [
    (
        "a sequence asks each step with the request",
        {"root": node("Sequence", {"serviceName": "a"}, {"serviceName": "b"})},
        {"x": 1},
        200,
        {"by": "b", "path": "/ask/b", "got": {"x": 1}},
    ),
    (
        "or with the answer before",
        {"root": node("Sequence", {"serviceName": "a"}, {"serviceName": "b", "data": "$response"})},
        {"x": 1},
        200,
        {"by": "b", "path": "/ask/b", "got": {"by": "a", "path": "/ask/a", "got": {"x": 1}}},
    ),
    (
        "a condition ends it",
        {"root": node("Sequence", {"serviceName": "a"}, {"serviceName": "b", "condition": "none"})},
        {"x": 1},
        200,
        {"by": "a", "path": "/ask/a", "got": {"x": 1}},
    ),
    (
        "a hard failure ends it",
        {"root": node("Sequence", {"serviceName": "bad", **HARD}, {"serviceName": "a"})},
        {},
        500,
        {"by": "bad", "path": "/ask/bad", "got": {}},
    ),
    (
        "a soft one does not",
        {"root": node("Sequence", {"serviceName": "bad"}, {"serviceName": "a"})},
        {},
        200,
        {"by": "a", "path": "/ask/a", "got": {}},
    ),
    (
        "a switch takes the first that fits",
        {
            "root": node(
                "Switch",
                {"serviceName": "a", "condition": '[@this].#(x=="one")'},
                {"serviceName": "b", "condition": '[@this].#(x=="two")'},
            )
        },
        {"x": "two"},
        200,
        {"by": "b", "path": "/ask/b", "got": {"x": "two"}},
    ),
    (
        "an ensemble asks all, through other nodes too",
        {
            "root": node("Ensemble", {"name": "left", "serviceName": "a"}, {"nodeName": "more"}),
            "more": node("Sequence", {"serviceName": "b"}),
        },
        {"x": 1},
        200,
        {
            "left": {"by": "a", "path": "/ask/a", "got": {"x": 1}},
            "1": {"by": "b", "path": "/ask/b", "got": {"x": 1}},
        },
    ),
    (
        "a service by its name in the cluster",
        {"root": node("Sequence", {"serviceUrl": "http://b.n.svc.cluster.local/own"})},
        {},
        200,
        {"by": "b", "path": "/own", "got": {}},
    ),
]


@pytest.mark.parametrize(
    ("nodes", "body", "status", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
async def test_a_graph_is_gone_through(
    nodes: dict[str, Json], body: Json, status: int, expected: Any
) -> None:
    async with routing() as router:
        for name in ("a", "b"):
            await router.serves(name, answers(name), predict=f"/ask/{name}")
        await router.serves("bad", answers("bad", 500), predict="/ask/bad")
        router.route("graph", graph=nodes)
        found = await router.ask("/serving/n/graph/", body)
        assert (found.status, found.json) == (status, expected)


async def test_what_a_graph_cannot_do_is_said() -> None:
    async with routing() as router:
        switch = node("Switch", {"serviceName": "a", "condition": "never"})
        router.route("switch", graph={"root": switch})
        router.route("missing", graph={"root": node("Sequence", {"serviceName": "gone"})})
        found = await router.ask("/serving/n/switch/", {})
        assert (found.status, "switch root" in found.json["error"]) == (404, True)
        found = await router.ask("/serving/n/missing/", {})
        assert (found.status, "gone" in found.json["error"]) == (503, True)


async def test_a_splitter_keeps_its_weights() -> None:
    async with routing() as router:
        for name in ("a", "b"):
            await router.serves(name, answers(name))
        steps = [{"serviceName": "a", "weight": 20}, {"serviceName": "b", "weight": 80}]
        router.route("graph", graph={"root": node("Splitter", *steps)})
        heard = [(await router.ask("/serving/n/graph/", {})).json["by"] for _ in range(20)]
        assert heard.count("a") == 4
