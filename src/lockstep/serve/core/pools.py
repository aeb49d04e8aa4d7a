"""InferencePools: pods that another component runs, as the backends of a route of our own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep.api.core import PODS, AnyObject, Pod
from lockstep.api.merge import difference
from lockstep.api.meta import Condition
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL
from lockstep.api.serving import ROUTES, Backend, Route, RouteSpec
from lockstep.api.wire import Json, convert, to_builtins
from lockstep.runtime.actions import Action, Change, Create
from lockstep.serve.core.status import dated

CONTROLLER = "lockstep.dev/router"


@dataclass(frozen=True, slots=True)
class SeenPool:
    """A pool, the pods of its namespace, its route."""

    pool: AnyObject
    pods: Iterable[Pod]
    route: Route | None = None
    url: str = ""


def decide_pool(seen: SeenPool, now: float) -> tuple[Json, list[Action]]:
    """Return the status of a pool, and what makes its pods the backends of its route.

    Pods that the selector names get the labels by which routers find replicas; those that a
    service has keep theirs.
    """
    meta, spec = seen.pool.metadata, seen.pool.spec
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    ports = [one.get("number") for one in spec.get("targetPorts") or []]
    if not labels or len(ports) != 1 or not isinstance(ports[0], int):
        text = "spec.selector.matchLabels and one spec.targetPorts[].number are needed"
        return _status(seen, now, "InvalidSpec", text), []
    if seen.route is not None and not _owned(seen.route, meta.uid):
        return _status(seen, now, "NameTaken", "a service has this name; choose another"), []
    actions: list[Action] = []
    mine, others = 0, 0
    for pod in seen.pods:
        has = pod.metadata.labels
        fits = labels.items() <= has.items() and pod.metadata.deletion_timestamp is None
        marked = (has.get(ROUTE_LABEL), has.get(REVISION_LABEL)) == (meta.name, meta.name)
        if fits and ROUTE_LABEL in has and not marked:
            others += 1
            continue
        mine += fits
        if fits != marked:
            given = meta.name if fits else None
            patch = {"metadata": {"labels": {ROUTE_LABEL: given, REVISION_LABEL: given}}}
            actions.append(Change(PODS, pod.metadata.name, patch))
    wanted = to_builtins(
        RouteSpec(
            backends=[Backend(revision=meta.name, port=ports[0])],
            choice="prefix",
            models=[meta.name],
            url=seen.url,
        )
    )
    if seen.route is None:
        actions.insert(0, Create(ROUTES, {"metadata": _route_metadata(seen), "spec": wanted}))
    elif patch := difference(to_builtins(seen.route.spec), wanted):
        actions.insert(0, Change(ROUTES, meta.name, {"spec": patch}))
    if others:
        text = f"{others} pods that fit belong to a service of their own and are left to it"
        return _status(seen, now, "PodsTaken", text), actions
    reason, text = ("", "") if mine else ("NoPods", "no pod has the labels of spec.selector")
    return _status(seen, now, reason, text), actions


def _route_metadata(seen: SeenPool) -> Json:
    meta = seen.pool.metadata
    owner = {
        "apiVersion": seen.pool.api_version,
        "kind": seen.pool.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
    }
    return {"name": meta.name, "labels": {ROUTE_LABEL: meta.name}, "ownerReferences": [owner]}


def _owned(route: Route, uid: str) -> bool:
    return any(one.uid == uid for one in route.metadata.owner_references)


def _status(seen: SeenPool, now: float, reason: str, text: str) -> Json:
    """Return the status in the words of InferencePool v1: one parent, this controller."""
    parents = [
        one
        for one in seen.pool.status.get("parents") or []
        if one.get("controllerName") == CONTROLLER
    ]
    before = [convert(one, Condition) for one in (parents or [{}])[0].get("conditions") or []]
    refused = reason in ("InvalidSpec", "NameTaken")
    told = [
        ("Accepted", not refused, reason if refused else "", text if refused else ""),
        ("ResolvedRefs", not reason, reason, text),
    ]
    ref = {"kind": "Route", "name": seen.pool.metadata.name, "group": "lockstep.dev"}
    conditions = to_builtins(dated(before, told, seen.pool.metadata.generation, now))
    for one in conditions:
        # Their schema wants a reason also for what is well.
        one.setdefault("reason", "Accepted" if one["type"] == "Accepted" else "ResolvedRefs")
    return {"parents": [{"parentRef": ref, "controllerName": CONTROLLER, "conditions": conditions}]}
