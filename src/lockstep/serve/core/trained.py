"""Which TrainedModels each replica is to load or unload, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockstep.api.core import CONFIG_MAPS, AnyObject, ConfigMap
from lockstep.api.meta import Condition
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.wire import Json, convert, to_builtins
from lockstep.compat.kserve import trained
from lockstep.compat.kserve.objects import InferenceService
from lockstep.compat.kserve.problem import Problem
from lockstep.runtime.actions import Action, Change, Create
from lockstep.serve.core.status import dated


@dataclass(frozen=True, slots=True)
class Order:
    """What one replica is told: to load the model from *uri*, or without one to unload it."""

    pod: str
    """UID of the replica."""
    model: str
    uri: str = ""


@dataclass(frozen=True, slots=True)
class SeenModels:
    """A service, its TrainedModels and its replicas."""

    service: InferenceService | None
    models: list[AnyObject]
    config: ConfigMap | None = None
    replicas: Iterable[str] = ()
    """UIDs of those that are ready."""
    loaded: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By replica and model what was last loaded; a reason after ``!`` where that failed."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What is to be done for the models of a service."""

    actions: list[Action]
    orders: list[Order]
    statuses: dict[str, Json]
    """By TrainedModel."""


def decide_models(seen: SeenModels, now: float) -> Decided:
    """Return what brings each TrainedModel of a service into each of its replicas."""
    uris: dict[str, str] = {}
    statuses: dict[str, Json] = {}
    for one in seen.models:
        try:
            uris[one.metadata.name] = trained.checked(one)
        except Problem as problem:
            statuses[one.metadata.name] = _status(seen, one, problem.reason, str(problem), now)
    replicas = sorted(seen.replicas)
    orders = [
        Order(pod, name, uri)
        for pod in replicas
        for name, uri in sorted(uris.items())
        if seen.loaded.get((pod, name)) != uri
    ]
    orders += [
        Order(pod, name)
        for pod, name in sorted(seen.loaded)
        if name not in uris and pod in replicas
    ]
    for one in seen.models:
        if one.metadata.name in uris:
            reason, text = _standing(seen, one.metadata.name, uris[one.metadata.name], replicas)
            statuses[one.metadata.name] = _status(seen, one, reason, text, now)
    return Decided(list(_config(seen, uris)), orders, statuses)


def _standing(seen: SeenModels, name: str, uri: str, replicas: list[str]) -> tuple[str, str]:
    if seen.service is None:
        return "InferenceServiceMissing", "spec.inferenceService: there is no such service"
    if not replicas:
        return "InferenceServiceNotReady", f"no replica of {seen.service.metadata.name} is ready"
    told = [seen.loaded.get((pod, name), "") for pod in replicas]
    if failed := [one[1:] for one in told if one.startswith("!")]:
        return "ModelLoadFailed", failed[0]
    count = told.count(uri)
    return (
        ("", "") if count == len(told) else ("Loading", f"{count} of {len(told)} replicas have it")
    )


def _config(seen: SeenModels, uris: Mapping[str, str]) -> Iterable[Action]:
    if seen.service is None:
        return
    meta = seen.service.metadata
    specs = {one.metadata.name: one.spec.get("model") or {} for one in seen.models}
    data = {trained.FILE: trained.listing((name, specs[name]) for name in uris)}
    name = trained.config_name(meta.name)
    if seen.config is None and uris:
        owner = {
            "apiVersion": seen.service.api_version,
            "kind": seen.service.kind,
            "name": meta.name,
            "uid": meta.uid,
        }
        labels = {ROUTE_LABEL: meta.name}
        about = {"name": name, "labels": labels, "ownerReferences": [owner]}
        yield Create(CONFIG_MAPS, {"metadata": about, "data": data})
    elif seen.config is not None and seen.config.data != data:
        yield Change(CONFIG_MAPS, name, {"data": data})


def _status(seen: SeenModels, one: AnyObject, reason: str, text: str, now: float) -> Json:
    before = [convert(cond, Condition) for cond in one.status.get("conditions") or []]
    there = seen.service is not None
    shown = [
        ("InferenceServiceReady", there and bool(list(seen.replicas)), "NotReady", ""),
        ("Ready", not reason, reason, text),
    ]
    url = seen.service.status.url if seen.service is not None else ""
    conditions = dated(before, shown, one.metadata.generation, now)
    return {
        "url": f"{url}/v1/models/{one.metadata.name}:predict" if url else "",
        "conditions": to_builtins(conditions),
        "observedGeneration": one.metadata.generation,
    }
