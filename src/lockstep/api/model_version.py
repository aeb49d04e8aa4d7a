"""ModelVersion: a model with its origin."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class ModelVersionSpec(Wire, frozen=True):
    """Which model, where it is, how good it is and what it came from."""

    model: Annotated[str, Meta(min_length=1, description="Name of the model.")]
    version: Annotated[str, Meta(min_length=1, description="Which version of it.")]
    uri: Annotated[str, Meta(min_length=1, description="Where its files are.")]
    digest: Annotated[str, Meta(description="Sum over its files, as sha256:HEX.")] = ""
    metrics: Annotated[
        dict[str, float], Meta(description="What was measured of it, as accuracy.")
    ] = {}
    run: Annotated[str, Meta(description="Run that made it.")] = ""
    data: Annotated[list[str], Meta(description="Data that it was made from: URIs.")] = []
    stage: Annotated[
        Literal["Candidate", "Canary", "Production", "Retired"],
        Meta(description="How far it has come."),
    ] = "Candidate"


class ModelVersion(OwnObject, frozen=True):
    """One version of a model."""

    spec: ModelVersionSpec
    kind: str = "ModelVersion"


MODEL_VERSIONS = Resource(GROUP, VERSION, "modelversions", "ModelVersion", True, ModelVersion)
