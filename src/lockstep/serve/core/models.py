"""Models as Datasets: one of each model in a namespace, owned by all services that use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from lockstep.api.core import ControllerRevision
from lockstep.api.dataset_cache import OWN_CACHE_ANNOTATION
from lockstep.api.wire import Json, to_builtins
from lockstep.compat.fluid.objects import DATASETS, Dataset
from lockstep.compat.kserve import storage
from lockstep.compat.kserve.storage import Model
from lockstep.runtime.actions import Action, Change, Create, Delete
from lockstep.serve.core import local_models, surroundings
from lockstep.serve.core.pods import Failure
from lockstep.serve.core.service_state import Seen

MODEL_LABEL: Final = "lockstep.dev/model"
"""On a Dataset: it was made for services."""
_WAITS: Final = ("", "Listing", "Waiting", "NoRuntime")
"""Reasons of a Dataset that is on its way."""


def of(revision: ControllerRevision) -> Model | None:
    """Return the model that the replicas of *revision* take from a Dataset."""
    return storage.model_of(revision.data["template"].get("annotations") or {})


def datasets(seen: Seen, used: Iterable[ControllerRevision]) -> Iterator[Action]:
    """Yield what makes a Dataset of each model of the revisions *used*, and lets go of others.

    The last service that lets go of one deletes it.
    """
    owner = surroundings.meta(seen)["ownerReferences"][0]
    # Several services own one: none of them controls it.
    owner = {key: value for key, value in owner.items() if key != "controller"}
    wanted = {one.name: one for one in map(of, used) if one is not None}
    for name, model in sorted(wanted.items()):
        there = seen.datasets.get(name)
        if there is None:
            yield Create(DATASETS, _body(seen, model, owner))
        elif not _owned(there, owner["uid"]):
            yield _owners(there, [*to_builtins(there.metadata.owner_references), owner])
    for name, there in sorted(seen.datasets.items()):
        if name in wanted or not _owned(there, owner["uid"]):
            continue
        rest = [one for one in there.metadata.owner_references if one.uid != owner["uid"]]
        if rest:
            yield _owners(there, to_builtins(rest))
        elif there.metadata.deletion_timestamp is None:
            yield Delete(DATASETS, name, there.metadata.uid)


def failure(seen: Seen, revision: ControllerRevision) -> Failure | None:
    """Return why the model of *revision* cannot be read; none while it comes or is there."""
    model = of(revision)
    there = seen.datasets.get(model.name) if model is not None else None
    if model is None or there is None or there.status.phase == "Bound":
        return None
    told = next((one for one in there.status.conditions if one.type == "Ready"), None)
    if told is None or told.reason in _WAITS:
        return None
    return Failure(model.name, told.reason, told.message)


def _owned(dataset: Dataset, uid: str) -> bool:
    return any(one.uid == uid for one in dataset.metadata.owner_references)


def _owners(dataset: Dataset, owners: list[Json]) -> Change:
    meta = dataset.metadata
    patch = {"resourceVersion": meta.resource_version, "ownerReferences": owners}
    return Change(DATASETS, meta.name, {"metadata": patch})


def _body(seen: Seen, model: Model, owner: Json) -> Json:
    uri = local_models.source(model.uri, seen.service.metadata.namespace, seen.local_models)
    return {
        "apiVersion": DATASETS.api_version,
        "kind": DATASETS.kind,
        "metadata": {
            "namespace": seen.service.metadata.namespace,
            "name": model.name,
            "labels": {MODEL_LABEL: "true"},
            "annotations": {OWN_CACHE_ANNOTATION: "true"},
            "ownerReferences": [owner],
        },
        "spec": storage.dataset(replace(model, uri=uri)),
    }
