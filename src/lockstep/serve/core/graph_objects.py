"""What an InferenceGraph needs: its route, its name, and the truth about the services it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec import structs

from lockstep.api.core import Service
from lockstep.api.merge import difference
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.serving import ROUTES, Route, Router, RouteSpec
from lockstep.api.wire import to_builtins
from lockstep.compat.kserve.objects import GraphStatus, InferenceGraph, InferenceService
from lockstep.compat.kserve.problem import Problem
from lockstep.runtime.actions import Action, Change, Create
from lockstep.serve.core import graph, surroundings
from lockstep.serve.core.service_state import Seen
from lockstep.serve.core.status import dated


@dataclass(frozen=True, slots=True)
class SeenGraph:
    """All that is known of a graph."""

    graph: InferenceGraph
    services: Mapping[str, InferenceService]
    """Those of its namespace, by name."""
    route: Route | None = None
    name: Service | None = None
    routers: Iterable[Router] = ()


def decide_graph(seen: SeenGraph, now: float) -> tuple[GraphStatus, list[Action]]:
    """Return the status of a graph and what is to be done for it.

    A graph that cannot be gone through, or that calls a service that is not there, says so; what
    its route did before goes on.
    """
    spec, meta = seen.graph.spec, seen.graph.metadata
    try:
        graph.check(spec.nodes)
        if meta.name in seen.services:
            raise Problem("metadata.name", meta.name, "an InferenceService has it; choose another")
        missing = [one for one in graph.services(spec.nodes) if one not in seen.services]
        if missing:
            there = ", ".join(sorted(seen.services)) or "none"
            text = f"there is no such InferenceService in {meta.namespace}; there are: {there}"
            raise Problem("spec.nodes[].steps[].serviceName", ", ".join(missing), text)
    except Problem as problem:
        return _status(seen, now, "InvalidSpec", str(problem)), []
    view = _view(seen)
    wanted = RouteSpec(graph=spec.nodes, timeout=spec.timeout or 60, url=surroundings.url(view))
    actions: list[Action] = []
    if seen.route is None:
        about = {**surroundings.meta(view), "name": meta.name, "labels": {ROUTE_LABEL: meta.name}}
        actions.append(Create(ROUTES, {"metadata": about, "spec": to_builtins(wanted)}))
    elif patch := difference(to_builtins(seen.route.spec), to_builtins(wanted)):
        actions.append(Change(ROUTES, meta.name, {"spec": patch}))
    actions += surroundings.name(view, surroundings.meta(view))
    late = [one for one in graph.services(spec.nodes) if not _ready(seen.services[one])]
    if late:
        return _status(seen, now, "ServicesNotReady", f"not ready: {', '.join(late)}"), actions
    if surroundings.first(view.routers) is None:
        text = "no router lives; `lockstep router` runs one"
        return _status(seen, now, "NoRouter", text), actions
    return _status(seen, now, "", ""), actions


def _view(seen: SeenGraph) -> Seen:
    one = seen.graph
    owner = InferenceService(metadata=one.metadata, api_version=one.api_version, kind=one.kind)
    return Seen(owner, [], [], [], route=seen.route, name=seen.name, routers=list(seen.routers))


def _ready(service: InferenceService) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in service.status.conditions)


def _status(seen: SeenGraph, now: float, reason: str, message: str) -> GraphStatus:
    before, generation = seen.graph.status, seen.graph.metadata.generation
    told = [("Ready", not reason, reason, message)]
    return structs.replace(
        before,
        url=surroundings.url(_view(seen)),
        conditions=dated(before.conditions, told, generation, now),
        observed_generation=generation,
        deployment_mode="Standard",
    )
