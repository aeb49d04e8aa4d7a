"""Objects that become InferenceServices: what is made of them, and how they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.api.core import AnyObject, Pod
from lockstep.api.merge import difference
from lockstep.api.meta import Condition
from lockstep.api.names import QUEUE_LABEL
from lockstep.api.wire import Json, convert, to_builtins
from lockstep.compat.kserve.objects import INFERENCE_SERVICES, InferenceService
from lockstep.compat.kserve.problem import Problem
from lockstep.runtime.actions import Action, Change, Create, Delete
from lockstep.serve.core import pods
from lockstep.serve.core.gangs import is_worker
from lockstep.serve.core.status import dated

HONOURED_CONDITION: Final = "SpecHonoured"
HASH_ANNOTATION: Final = "lockstep.dev/made-of"
"""On an InferenceService that was made of another object: which kind and name."""


@dataclass(frozen=True, slots=True)
class SeenComposition:
    """All that is known of such an object."""

    object: AnyObject
    children: Mapping[str, InferenceService]
    """InferenceServices of its namespace by name."""
    pods: list[Pod]


def compose(
    seen: SeenComposition,
    translate: Callable[[AnyObject], list[Json]],
    now: float,
    ignored: Callable[[AnyObject], list[str]] = lambda _: [],
) -> tuple[Json, list[Action]]:
    """Return the status of an object and what is to be done for it.

    A condition names the fields that are *ignored*.
    One that cannot be translated says why; what was made of it before goes on.
    """
    meta = seen.object.metadata
    try:
        wanted = translate(seen.object)
        for one in wanted:
            child = seen.children.get(one["name"])
            if child is not None and not _owned(child, meta.uid):
                text = "an InferenceService of this name is there already; choose another name"
                raise Problem("metadata.name", one["name"], text)
    except Problem as problem:
        return _status(seen, [], now, (problem.reason, str(problem)), None), []
    actions: list[Action] = []
    for one in wanted:
        body = _body(seen.object, one)
        child = seen.children.get(one["name"])
        if child is None:
            actions.append(Create(INFERENCE_SERVICES, body))
            continue
        have = {
            "metadata": {"annotations": dict(child.metadata.annotations)},
            "spec": to_builtins(child.spec),
        }
        want = {
            "metadata": {"annotations": body["metadata"]["annotations"]},
            "spec": to_builtins(convert(body["spec"], type(child.spec))),
        }
        if patch := difference(have, want):
            actions.append(Change(INFERENCE_SERVICES, one["name"], patch))
    names = {one["name"] for one in wanted}
    for name, child in seen.children.items():
        if _owned(child, meta.uid) and name not in names:
            actions.append(Delete(INFERENCE_SERVICES, name, child.metadata.uid))
    there = [seen.children[name] for name in sorted(names) if name in seen.children]
    late = [one for one in there if not _ready(one)]
    missing = len(there) < len(names)
    reason = "Progressing" if late or missing else ""
    text = "; ".join(f"{one.metadata.name}: {_why(one)}" for one in late)
    told = (reason, text or ("being made" if missing else ""))
    return _status(seen, there, now, told, ignored(seen.object)), actions


def _owned(child: InferenceService, uid: str) -> bool:
    return any(one.uid == uid for one in child.metadata.owner_references)


def _body(obj: AnyObject, one: Json) -> Json:
    meta = obj.metadata
    owner = {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
    }
    labels = {QUEUE_LABEL: meta.labels[QUEUE_LABEL]} if QUEUE_LABEL in meta.labels else {}
    return {
        "apiVersion": INFERENCE_SERVICES.api_version,
        "kind": INFERENCE_SERVICES.kind,
        "metadata": {
            "namespace": meta.namespace,
            "name": one["name"],
            "ownerReferences": [owner],
            "labels": labels,
            "annotations": {**one["annotations"], HASH_ANNOTATION: f"{obj.kind}/{meta.name}"},
        },
        "spec": one["spec"],
    }


def _ready(service: InferenceService) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in service.status.conditions)


def _why(service: InferenceService) -> str:
    found = next((one for one in service.status.conditions if one.type == "Ready"), None)
    return found.message if found is not None else "no word of it yet"


def _status(
    seen: SeenComposition,
    children: list[InferenceService],
    now: float,
    why: tuple[str, str],
    ignored: list[str] | None,
) -> Json:
    """Return the status, in the fields that clients of either kind read.

    *why* is the reason and the message for which the object is not ready; empty when it is.
    *ignored* fields stay as told before where they are None.
    """
    reason, message = why
    before = [convert(one, Condition) for one in seen.object.status.get("conditions") or []]
    generation = seen.object.metadata.generation
    kind = "Available" if seen.object.kind == "LeaderWorkerSet" else "Ready"
    shown = [(kind, not reason, reason, message)]
    told_before = any(one.type == HONOURED_CONDITION for one in before)
    if ignored or (told_before and ignored is not None):
        text = "; ".join(ignored)
        shown.append((HONOURED_CONDITION, not ignored, "FieldsIgnored", text))
    told = dated(before, shown, generation, now)
    heads = [one for one in seen.pods if not is_worker(one) and not pods.going(one)]
    main = next((one for one in children if one.metadata.name == seen.object.metadata.name), None)
    status: Json = {
        "conditions": [to_builtins(one) for one in told],
        "observedGeneration": generation,
        "replicas": len(heads),
        "readyReplicas": sum(map(pods.ready, heads)),
        "updatedReplicas": len(heads),
    }
    if main is not None and main.status.url:
        status |= {"url": main.status.url, "address": main.status.address}
    return status
