"""What is wrong with a graph, and which paths its conditions know."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.compat.kserve.problem import Problem
from lockstep.serve.core import gjson, graph

A = {"serviceName": "a"}


def root(kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"root": {"routerType": kind, "steps": list(steps)}}


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ({}, "called root"),
        (root("Circle", A), "one of Sequence"),
        (root("Sequence"), "at least one step"),
        (root("Sequence", {}), "exactly one of"),
        (root("Sequence", {**A, "serviceUrl": "http://x"}), "exactly one of"),
        (root("Sequence", {"nodeName": "b"}), "no such node"),
        (root("Sequence", {"nodeName": "root"}), "root > root"),
        (root("Splitter", {**A, "weight": 50}), "make 100"),
        (root("Switch", A), "needs one"),
        (root("Switch", {**A, "condition": "#(a"}), "not closed"),
        (root("Sequence", {**A, "data": "$other"}), "$response"),
        (root("Sequence", {**A, "dependency": "Firm"}), "Soft or Hard"),
    ],
)
def test_a_graph_that_cannot_work_is_named(nodes: dict[str, Any], says: str) -> None:
    with pytest.raises(Problem) as found:
        graph.check(nodes)
    assert says in str(found.value)


DOCUMENT = {
    "predictions": [{"label": "dog", "score": 0.9}, {"label": "cat", "score": 0.2}],
    "a.b": 1,
}


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("predictions", True),
        ("predictions.0.label", True),
        ("predictions.2", False),
        ("predictions.#", True),
        ('predictions.#(label=="cat")', True),
        ('predictions.#(label=="cow")', False),
        ('predictions.#(label=="cat").score', True),
        ("predictions.#(score>0.5)#", True),
        ("predictions.#(score>2)#", False),
        ("predictions.#(label>2)#", False),
        ('predictions.#(label%"d*")', True),
        ("predictions.#.label", True),
        ('[@this].#(predictions.0.label=="dog")', True),
        ('[@this].#(predictions.0.label=="cat")', False),
        (r"a\.b", True),
        ("none", False),
    ],
)
def test_a_condition_looks_where_gjson_does(path: str, there: bool) -> None:
    assert gjson.exists(DOCUMENT, path) is there
