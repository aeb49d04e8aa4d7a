"""The pod of a step: the user's own, with what brings its files in and its results out."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from typing import Any, Final

from lockstep.api.names import (
    ATTEMPT_LABEL,
    GANG_LABEL,
    GANG_SIZE_ANNOTATION,
    MAX_WAIT_ANNOTATION,
    QUEUE_LABEL,
    SCHEDULER_NAME,
)
from lockstep.api.pipeline import LOCKS_ANNOTATION, RUN_LABEL, STEP_ANNOTATION, Output, PodStep
from lockstep.api.wire import Json
from lockstep.pipelines.core import patching
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.nodes import Node, there
from lockstep.pipelines.core.told import ARTEFACTS
from lockstep.pipelines.core.values import BadExpression, flat, render, text_of

FILES_IMAGE: Final = "lockstep/step-files:latest"
FETCHER: Final = "lockstep-fetch"
KEEPER: Final = "lockstep-files"
RESULT: Final = "/lockstep-result/message"
"""Where the keeper leaves what the step gave: its termination message."""
ORDERS: Final = "LOCKSTEP_FILES"
_STATE: Final = "/lockstep-state"
_VOLUME: Final = "lockstep-shared"
_SEATS: Final = "/lockstep-seats"
"""Where the fetcher finds the places of files that are put over single paths."""
_KEPT: Final = "lockstep-artefacts"
UPLOAD_SECONDS: Final = 3600
"""How long outputs may take to reach the store once the step's containers have ended."""
_REQUESTS: Final = {"requests": {"cpu": "10m", "memory": "32Mi"}}


def object_name(run: str, uid: str, step: str, attempt: int) -> str:
    """Return the name of what the try *attempt* of *step* makes: the same however often asked."""
    digest = hashlib.sha256(f"{uid}/{step}/{attempt}".encode()).hexdigest()[:8]
    last = re.sub(r"[^a-z0-9]+", "-", step.lower().partition(".")[2] or step.lower())
    return f"{run[:30]}-{last.strip('-')[-20:]}".strip("-") + f"-{digest}"


def place(engine: Engine, node: Node, output: str) -> str:
    """Return where an artefact of a step goes; empty where the run has no root."""
    root = engine.spec.root.rstrip("/")
    if not root:
        return ""
    return f"{root}/{engine.run.name}-{engine.run.uid[:8]}/{node.id}/{node.attempt}/{output}"


def variables(engine: Engine, node: Node) -> Json:
    """Return what a pod's template sees: inputs, run, item, outputs and the step itself."""
    step = there(node.template.pod)
    seen = engine.variables(node)
    outputs: Json = {}
    for one in step.outputs:
        uri = place(engine, node, one.name)
        if one.uri:
            uri = render(one.uri, {**seen, "uri": uri})
        path = render(one.path, {**seen, "uri": uri})
        outputs[one.name] = {"uri": uri, "path": path}
    name = object_name(engine.run.name, engine.run.uid, node.id, node.attempt)
    about = {"name": node.task.name, "id": node.id, "attempt": node.attempt, "pod": name}
    return {**seen, "outputs": outputs, "step": about}


def build(engine: Engine, node: Node) -> Json:
    """Return the pod of the present try of *node*.

    Raises:
        BadExpression: when its template refers to what there is not.
    """
    step = there(node.template.pod)
    seen = variables(engine, node)
    template = render(step.template, seen, _escaped)
    meta, spec = template.get("metadata") or {}, copy.deepcopy(template.get("spec") or {})
    if not isinstance(spec, dict) or not spec.get("containers"):
        raise BadExpression(f"template {node.task.template}: pod.template.spec needs containers")
    for patch in step.patch:
        spec = patching.merged(spec, patching.read(text_of(render(patch, seen, _escaped))))
    for container in spec["containers"]:
        for field in ("command", "args"):
            if field in container:
                container[field] = _words(container[field])
    _place_in_queue(engine, node, spec)
    _add_files(engine, node, step, spec, seen)
    labels = {**(meta.get("labels") or {}), **_labels(engine, node, meta)}
    annotations = {**(meta.get("annotations") or {}), STEP_ANNOTATION: node.id}
    if (most := node.task.max_wait or engine.spec.max_wait) is not None:
        annotations[MAX_WAIT_ANNOTATION] = most
    if node.task.gang and node.attempt == 0:
        gang, size = _gang(engine, node)
        labels[GANG_LABEL], annotations[GANG_SIZE_ANNOTATION] = gang, str(size)
    if locks := engine.locks_of(node):
        annotations[LOCKS_ANNOTATION] = json.dumps(locks)
    name = object_name(engine.run.name, engine.run.uid, node.id, node.attempt)
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec}


def _words(given: list[Any]) -> list[str]:
    """Return the words of a command, of which an expression may give several or none."""
    found: list[str] = []
    for one in given:
        found += _words(one) if isinstance(one, list) else [text_of(one)]
    return found


def _labels(engine: Engine, node: Node, meta: Json) -> dict[str, str]:
    own = {RUN_LABEL: engine.run.name, ATTEMPT_LABEL: str(node.attempt)}
    if QUEUE_LABEL not in (meta.get("labels") or {}):
        own[QUEUE_LABEL] = engine.spec.queue
    return own


def _gang(engine: Engine, node: Node) -> tuple[str, int]:
    """Return the gang that the first try of *node* belongs to, and how many pods it has."""
    graph = there(node.graph())
    tasks = there(graph.scope).plan.tasks.values()
    size = sum(one.gang == node.task.gang for one in tasks)
    return object_name(engine.run.name, engine.run.uid, f"{graph.id}.{node.task.gang}", 0), size


def _place_in_queue(engine: Engine, node: Node, spec: Json) -> None:
    spec.setdefault("schedulerName", SCHEDULER_NAME)
    spec["restartPolicy"] = "Never"
    run = engine.spec
    if run.priority_class_name:
        spec.setdefault("priorityClassName", run.priority_class_name)
    if run.service_account_name:
        spec.setdefault("serviceAccountName", run.service_account_name)


def _add_files(engine: Engine, node: Node, step: PodStep, spec: Json, seen: Json) -> None:
    """Give the pod what fetches its inputs and what uploads its outputs."""
    fetched = _fetches(step, seen)
    results = [_result(engine, node, one, seen) for one in step.outputs]
    if not fetched and not results:
        return
    mounts = [
        {"name": _VOLUME, "mountPath": path, "subPath": f"d{number}"}
        for number, path in enumerate(step.shared)
    ]
    seats = _seats(fetched, spec["containers"], step.shared)
    theirs = _mounts_around([one["path"] for one in (*fetched, *results)], spec["containers"])
    volumes = [
        *(spec.get("volumes") or []),
        {"name": _VOLUME, "emptyDir": {}},
        {"name": "lockstep-state", "emptyDir": {}},
    ]
    for container in spec["containers"]:
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), *mounts, *seats]
    env, kept = _store(engine)
    volumes += [{"name": _KEPT, "hostPath": {"path": engine.run.artefacts}}] if kept else []
    theirs += kept
    helpers = []
    if fetched:
        inside = [{"name": _VOLUME, "mountPath": _SEATS, "subPath": "seats"}] if seats else []
        own = [*mounts, *inside, *theirs]
        helpers.append(_helper(FETCHER, "fetch", {"fetch": fetched}, env, own))
    if results:
        keeper = _helper(KEEPER, "keep", {"outputs": results}, env, [*mounts, *theirs])
        helpers.append(keeper | _as_sidecar())
        spec["terminationGracePeriodSeconds"] = UPLOAD_SECONDS
    spec["initContainers"] = [*helpers, *(spec.get("initContainers") or [])]
    spec["volumes"] = volumes


def _seats(fetched: list[Json], containers: list[Json], shared: list[str]) -> list[Json]:
    """Send what is fetched to no shared directory to a place of its own; return its mounts.

    Each is then put over its path alone: nothing else of the image is hidden.
    """
    found: list[Json] = []
    places = [*shared, *(str(m["mountPath"]) for m in _mounts_of(containers))]
    for number, one in enumerate(fetched):
        path = one["path"]
        if any(path.startswith(f"{place.rstrip('/')}/") for place in places):
            continue
        one["path"] = f"{_SEATS}/{number}"
        seat = f"seats/{number}"
        found.append({"name": _VOLUME, "mountPath": path, "subPath": seat, "readOnly": False})
    return found


def _mounts_of(containers: list[Json]) -> list[Json]:
    return [one for container in containers for one in container.get("volumeMounts") or []]


def _mounts_around(paths: list[str], containers: list[Json]) -> list[Json]:
    """Return the mounts of the step's own volumes in which *paths* lie, each place once."""
    found: dict[str, Json] = {}
    for mount in _mounts_of(containers):
        place = str(mount["mountPath"]).rstrip("/")
        if any(path == place or path.startswith(f"{place}/") for path in paths):
            found.setdefault(place, {**mount, "readOnly": False})
    return [*found.values()]


def _as_sidecar() -> Json:
    ready = f"until [ -e {_STATE}/ready ]; do sleep 0.01; done"
    return {
        "restartPolicy": "Always",
        "terminationMessagePath": RESULT,
        # Only once it listens for its signal may the step's own containers start.
        "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", ready]}}},
    }


def _helper(name: str, mode: str, orders: Json, env: Json, mounts: list[Json]) -> Json:
    orders = {"state": _STATE, "message": RESULT, **orders}
    return {
        "name": name,
        "image": FILES_IMAGE,
        "args": [mode],
        "env": [{"name": ORDERS, "value": _escaped(json.dumps(orders))}],
        **env,
        "volumeMounts": [{"name": "lockstep-state", "mountPath": _STATE}, *mounts],
        "resources": _REQUESTS,
        "terminationMessagePath": RESULT,
    }


def _escaped(text: str) -> str:
    """Return *text* so that Kubernetes replaces no ``$(NAME)`` in it."""
    return text.replace("$(", "$$(")


def _store(engine: Engine) -> tuple[Json, list[Json]]:
    """Return the variables by which the run's store is reached, and the mounts."""
    if engine.spec.storage_secret:
        return {"envFrom": [{"secretRef": {"name": engine.spec.storage_secret}}]}, []
    if not engine.run.artefacts:
        return {}, []
    return {}, [{"name": _KEPT, "mountPath": ARTEFACTS}]


def _fetches(step: PodStep, seen: Json) -> list[Json]:
    found: list[Json] = []
    for one in step.fetch:
        given = render(one.artifact, seen)
        if given is None and one.optional:
            continue
        # Loops within loops give lists of lists.
        for artefact in flat(given):
            if not isinstance(artefact, dict) or not artefact.get("uri"):
                raise BadExpression(f"fetch {one.artifact}: {str(given)[:100]!r} is no artefact")
            path = render(one.path, {**seen, "artifact": artefact})
            order = {"uri": artefact["uri"], "path": path, **_rest(artefact)}
            if one.mode:
                order |= {"mode": one.mode, "recursive": one.recursive}
            found.append(order)
    return found


def _rest(artefact: Json) -> Json:
    """Return what is known of an artefact beside its address: its digest, or its very text."""
    return {key: artefact[key] for key in ("digest", "raw") if artefact.get(key)}


def _result(engine: Engine, node: Node, one: Output, seen: Json) -> Json:
    there = seen["outputs"][one.name]
    found: Json = {"name": one.name, "kind": one.kind, "path": there["path"]}
    if one.kind == "Artifact":
        if not there["uri"]:
            raise BadExpression(
                f"output {one.name} of {node.task.name} is an artefact: the run needs spec.root, "
                "as s3://BUCKET/PATH"
            )
        found |= {"uri": there["uri"], "type": one.type}
    if one.optional:
        found["optional"] = True
    if one.default:
        found |= {"default": one.default, "optional": True}
    return found
