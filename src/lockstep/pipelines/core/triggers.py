"""When a trigger makes a run: each version of a model or a dataset that is new, once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from lockstep.api import timestamp
from lockstep.api.dataset_cache import DatasetCache, label_of
from lockstep.api.model_version import ModelVersion
from lockstep.api.names import API_VERSION
from lockstep.api.pipeline import RUN_LABEL, PipelineRun
from lockstep.api.pipeline_trigger import (
    CHAIN_ANNOTATION,
    EVENT_ANNOTATION,
    TRIGGER_LABEL,
    PipelineTrigger,
)
from lockstep.api.wire import Json, to_builtins
from lockstep.pipelines.core.makers import Wish, owner
from lockstep.pipelines.core.values import BadExpression, render

_ENDED: Final = frozenset({"Succeeded", "Failed", "Stopped"})
_WAITS: Final = "waits: "


@dataclass(frozen=True, slots=True)
class Event:
    """A version that there is."""

    key: str
    """What tells it from every other."""
    source: str
    """KIND/NAME."""
    seen: Json
    """What the arguments of a run see of it."""
    chain: int = 0
    """How many triggers led to it."""
    is_new: bool = True
    """Whether it came after the trigger."""


def events(
    trigger: PipelineTrigger,
    versions: Iterable[ModelVersion],
    caches: Iterable[DatasetCache],
    run: Callable[[str], PipelineRun | None],
) -> list[Event]:
    """Return what there is of what *trigger* waits for, oldest first."""
    since = trigger.metadata.creation_timestamp or ""
    wanted = trigger.spec.model_version
    found: list[tuple[str, Event]] = []
    for one in versions if wanted is not None else ():
        meta = one.metadata
        if wanted is None or (wanted.stage and one.spec.stage != wanted.stage):
            continue
        born = meta.creation_timestamp or ""
        seen = {"kind": "ModelVersion", "name": meta.name, **to_builtins(one.spec)}
        chain = _chain(one, run)
        event = Event(_digest(meta.uid), f"ModelVersion/{meta.name}", seen, chain, born >= since)
        found.append((born, event))
    return [
        *(one for _, one in sorted(found, key=lambda pair: (pair[0], pair[1].source))),
        *_bound(trigger, caches, since),
    ]


def _bound(trigger: PipelineTrigger, caches: Iterable[DatasetCache], since: str) -> list[Event]:
    """Return the version of the dataset that is bound, if one is."""
    there = [one for one in caches if one.spec.version]
    if not there:
        return []
    version, name = there[0].spec.version, trigger.spec.dataset
    uri = next((mount.uri for mount in there[0].spec.mounts), "")
    seen = {"kind": "Dataset", "name": name, "version": version, "uri": uri}
    born = min(one.metadata.creation_timestamp or "" for one in there)
    is_new = born >= since or bool(trigger.status.handled)
    # The same version may come back after another: then it is new again.
    before = [one for one in trigger.status.handled if one != _digest(name, version)]
    key = _digest(name, version)
    return [Event(key, f"Dataset/{name}", {**seen, "after": before[:1]}, 0, is_new)]


def _chain(one: ModelVersion, run: Callable[[str], PipelineRun | None]) -> int:
    """Return how many triggers led to a version: as it says itself, or the run that it is from."""
    meta = one.metadata
    maker = run(meta.labels.get(RUN_LABEL) or one.spec.run)
    said = [meta.annotations, maker.metadata.annotations if maker is not None else {}]
    found = [notes.get(CHAIN_ANNOTATION, "") for notes in said]
    return max((int(text) for text in found if text.isdecimal()), default=0)


def wish(
    trigger: PipelineTrigger, there: Sequence[Event], made: Sequence[PipelineRun], now: float
) -> Wish:
    """Return what *trigger* wants at *now*, of whose runs *made* are there.

    One version is seen to at a time, oldest first. A version that came before the trigger starts
    nothing, and neither does one at the end of too long a chain of triggers: that is said.
    """
    spec = trigger.spec
    known = {one.key for one in there}
    old = [one.key for one in there if not one.is_new]
    handled = [*dict.fromkeys([*trigger.status.handled, *old])]
    if not spec.dataset:
        handled = [key for key in handled if key in known]
    status = {**to_builtins(trigger.status), "handled": handled}
    waiting = [one for one in there if one.key not in handled]
    if (spec.model_version is None) != bool(spec.dataset):
        return Wish(status={**status, "message": "spec: give one of modelVersion and dataset"})
    if not waiting:
        told = trigger.status.message.startswith(_WAITS)
        return Wish(status={**status, "message": ""} if told else status)
    event = waiting[0]
    if not spec.enabled:
        words = f"{_WAITS}{event.source}, spec.enabled is false"
        return Wish(status={**status, "message": words})
    past = {
        **status,
        "handled": [event.key] if spec.dataset else [*handled, event.key],
        "lastEvent": event.source,
    }

    nothing = partial(_passed_over, trigger, event, past)
    if event.chain >= spec.max_chain:
        words = (
            f"{event.chain} triggers led to it, one after the other, and spec.maxChain is "
            f"{spec.max_chain}"
        )
        return Wish(status=nothing(words), again=now)
    active = sum(one.status.phase not in _ENDED for one in made)
    if active >= spec.max_concurrency:
        words = f"{_WAITS}{event.source}: {active} runs go on, spec.maxConcurrency is "
        return Wish(status={**status, "message": f"{words}{spec.max_concurrency}"})
    try:
        run = _run(trigger, event)
    except BadExpression as error:
        return Wish(status=nothing(f"spec.run.spec.arguments: {error}"), again=now)
    done = {"lastRun": run["metadata"]["name"], "lastTime": timestamp.show(now), "message": ""}
    return Wish(run, status={**past, **done}, refused=nothing, again=now)


def _passed_over(trigger: PipelineTrigger, event: Event, past: Json, words: str) -> Json:
    """Return the status in which an event has started nothing, and why."""
    said = f"{event.source} started nothing: {words}"[:2000]
    return {**past, "passedOver": trigger.status.passed_over + 1, "message": said}


def _run(trigger: PipelineTrigger, event: Event) -> Json:
    given, name = trigger.spec.run, trigger.metadata.name
    arguments = render(given.spec.get("arguments") or {}, {"event": event.seen})
    digest = _digest(trigger.metadata.uid, event.key, *event.seen.get("after", ()))
    meta = {
        # The same name for the same version: it is made once, however often it is tried.
        "name": f"{name[:200]}-{digest}",
        "labels": {**given.labels, TRIGGER_LABEL: label_of(name)},
        "annotations": {
            **given.annotations,
            EVENT_ANNOTATION: event.source,
            CHAIN_ANNOTATION: str(event.chain + 1),
        },
        "ownerReferences": [owner(trigger, API_VERSION, "PipelineTrigger")],
    }
    return {"metadata": meta, "spec": {**given.spec, "arguments": arguments}}


def _digest(*parts: str) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:10]
