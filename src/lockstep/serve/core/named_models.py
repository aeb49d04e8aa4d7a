"""Models by name: which ModelVersion ``model://NAME/VERSION`` stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from lockstep.api.model_version import ModelVersion
from lockstep.compat.kserve.objects import InferenceService

_SCHEME: Final = "model://"


def with_model(service: InferenceService, models: Iterable[ModelVersion]) -> InferenceService:
    """Return *service* with the URI of the model that it names; as it is where it names none.

    The last part is a version, or a stage such as ``production``: of several of that stage, the
    newest. A name that stands for nothing stays, and is refused where URIs are read.
    """
    predictor = service.spec.predictor
    model = predictor.get("model") or {}
    uri = str(model.get("storageUri") or "")
    if not uri.startswith(_SCHEME):
        return service
    name, _, version = uri.removeprefix(_SCHEME).rpartition("/")
    own = [
        one
        for one in models
        if one.metadata.namespace == service.metadata.namespace and one.spec.model == name
    ]
    found = [one for one in own if one.spec.version == version] or sorted(
        (one for one in own if one.spec.stage.lower() == version.lower()),
        key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name),
    )
    if not found:
        return service
    there = {**predictor, "model": {**model, "storageUri": found[-1].spec.uri}}
    return structs.replace(service, spec=structs.replace(service.spec, predictor=there))
