"""PipelineTrigger: a run for each new version of a model or of a dataset."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.meta import ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

TRIGGER_LABEL = "lockstep.dev/pipeline-trigger"
"""On a run: the trigger that made it."""
EVENT_ANNOTATION = "lockstep.dev/triggered-by"
"""On a run that a trigger made: KIND/NAME of what is new."""
CHAIN_ANNOTATION = "lockstep.dev/trigger-chain"
"""On a run, and on what its steps make: how many triggers led to it, one after the other."""


class NewModel(Wire, frozen=True):
    """Which new ModelVersions start a run."""

    model: Annotated[str, Meta(min_length=1, description="Name of the model.")]
    stage: Annotated[
        Literal["", "Candidate", "Canary", "Production", "Retired"],
        Meta(description="Only once the version is at this stage; at any when left out."),
    ] = ""


class TriggeredRun(Wire, frozen=True):
    """The run that is made."""

    spec: Annotated[
        dict[str, Any],
        Meta(
            description="Spec of a PipelineRun; its arguments may hold `${{ event.uri }}`, and "
            "event.kind, name, version, model, stage, metrics."
        ),
    ]
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PipelineTriggerSpec(Wire, frozen=True):
    """What starts a run, and which; one of modelVersion and dataset."""

    run: Annotated[TriggeredRun, Meta(description="The run that is made.")]
    model_version: Annotated[
        NewModel | None, Meta(description="Each version made since the trigger was.")
    ] = None
    dataset: Annotated[
        str, Meta(description="Dataset of which each new version that is bound starts a run.")
    ] = ""
    enabled: Annotated[
        bool, Meta(description="While false nothing is started; what is new waits.")
    ] = True
    max_concurrency: Annotated[
        int, Meta(ge=1, description="Runs at once; further ones wait, oldest first.")
    ] = 1
    max_chain: Annotated[
        int,
        Meta(
            ge=1,
            description="Triggers, one after the other, after which what a run registers starts "
            "no further one.",
        ),
    ] = 3


class PipelineTriggerStatus(Wire, frozen=True):
    """What the trigger has done."""

    handled: Annotated[
        list[str], Meta(description="Versions that there are and were seen to, as digests.")
    ] = []
    last_run: str = ""
    last_event: Annotated[str, Meta(description="KIND/NAME of what was seen to last.")] = ""
    last_time: str | None = None
    passed_over: Annotated[int, Meta(description="Versions that started no run.")] = 0
    message: Annotated[str, Meta(description="Why the last one did not, or has to wait.")] = ""


class PipelineTrigger(Wire, frozen=True):
    """A run for each new version of a model or of a dataset."""

    metadata: ObjectMeta
    spec: PipelineTriggerSpec
    status: PipelineTriggerStatus = PipelineTriggerStatus()
    api_version: str = API_VERSION
    kind: str = "PipelineTrigger"


PIPELINE_TRIGGERS = Resource(
    GROUP, VERSION, "pipelinetriggers", "PipelineTrigger", True, PipelineTrigger
)
