"""InferenceGraphs: what is wrong with one, and what its steps get and give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.kserve.problem import Problem
from lockstep.serve.core import gjson

ROOT: Final = "root"
TYPES: Final = ("Sequence", "Splitter", "Ensemble", "Switch")
_TARGETS: Final = ("nodeName", "serviceName", "serviceUrl")


def check(nodes: Mapping[str, Json]) -> None:
    """Look whether the *nodes* of a graph can be gone through.

    Raises:
        Problem: when they cannot; it names the field and what to do.
    """
    if ROOT not in nodes:
        raise Problem("spec.nodes", ", ".join(nodes) or "none", f"a node called {ROOT} is needed")
    for name, node in nodes.items():
        _check_node(f"spec.nodes.{name}", node, nodes)
    _check_cycles(nodes)


def _check_node(where: str, node: Json, nodes: Mapping[str, Json]) -> None:
    kind = node.get("routerType")
    if kind not in TYPES:
        raise Problem(f"{where}.routerType", kind, f"one of {', '.join(TYPES)} is needed")
    steps = node.get("steps") or []
    if not steps:
        raise Problem(f"{where}.steps", "none", "at least one step is needed")
    for number, step in enumerate(steps):
        at = f"{where}.steps[{number}]"
        stated = [field for field in _TARGETS if step.get(field)]
        if len(stated) != 1:
            value = ", ".join(stated) or "none"
            raise Problem(at, value, f"exactly one of {', '.join(_TARGETS)} is needed")
        target = step.get("nodeName")
        if target and target not in nodes:
            there = ", ".join(nodes)
            raise Problem(f"{at}.nodeName", target, f"there is no such node; there are: {there}")
        if step.get("data") not in (None, "", "$request", "$response"):
            raise Problem(f"{at}.data", step["data"], "$request or $response is needed")
        if step.get("dependency") not in (None, "", "Soft", "Hard"):
            raise Problem(f"{at}.dependency", step["dependency"], "Soft or Hard is needed")
        if condition := step.get("condition"):
            try:
                gjson.split(condition)
            except gjson.BadPath as error:
                raise Problem(f"{at}.condition", condition, str(error)) from None
        elif kind == "Switch":
            raise Problem(f"{at}.condition", "", "each step of a Switch needs one")
    if kind == "Splitter":
        total = sum(int(step.get("weight") or 0) for step in steps)
        if total != 100:
            raise Problem(f"{where}.steps", f"weights of {total}", "they must make 100 together")


def _check_cycles(nodes: Mapping[str, Json]) -> None:
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            cycle = " > ".join((*way[way.index(name) :], name))
            raise Problem("spec.nodes", cycle, "a request would go round and round; cut the cycle")
        if name in done:
            return
        for step in nodes[name].get("steps") or []:
            if step.get("nodeName"):
                visit(step["nodeName"], (*way, name))
        done.add(name)

    for name in nodes:
        visit(name, ())


def services(nodes: Mapping[str, Json]) -> list[str]:
    """Return the names of the services that a graph calls."""
    found = {
        str(step["serviceName"])
        for node in nodes.values()
        for step in node.get("steps") or []
        if step.get("serviceName")
    }
    return sorted(found)


def chosen(steps: Iterable[Json], body: bytes) -> Json | None:
    """Return the step of a Switch whose condition *body* fits; none where none does."""
    document = _document(body)
    for step in steps:
        if gjson.exists(document, str(step.get("condition", ""))):
            return step
    return None


def goes_on(step: Json, response: bytes) -> bool:
    """Return whether a step of a Sequence is taken after *response*."""
    condition = step.get("condition")
    return not condition or gjson.exists(_document(response), str(condition))


def given(step: Json, request: bytes, response: bytes | None) -> bytes:
    """Return what a step of a Sequence is asked with."""
    body = response if step.get("data") == "$response" and response is not None else request
    if not step.get("mapPredictionsToInstances"):
        return body
    document = _document(body)
    if isinstance(document, dict) and "predictions" in document:
        document["instances"] = document.pop("predictions")
        return json.dumps(document).encode()
    return body


def merged(steps: Iterable[Json], answers: Iterable[bytes]) -> bytes:
    """Return the answers of an Ensemble as one, each under its step's name, else its number."""
    found = {
        str(step.get("name") or number): _document(body)
        for number, (step, body) in enumerate(zip(steps, answers, strict=True))
    }
    return json.dumps(found).encode()


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
