"""PipelineTrigger: a run for each new version of a model or of a dataset."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
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

    model: Annotated[str, Meta(min_length=1)]
    """Name of the model."""
    stage: Literal["", "Candidate", "Canary", "Production", "Retired"] = ""
    """Only once the version is at this stage; at any when left out."""


class TriggeredRun(Wire, frozen=True):
    """The run that is made."""

    spec: dict[str, Any]
    """Spec of a PipelineRun; its arguments may hold `${{ event.uri }}`, and event.kind, name,
    version, model, stage, metrics."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PipelineTriggerSpec(Wire, frozen=True):
    """What starts a run, and which; one of modelVersion and dataset."""

    run: TriggeredRun
    """The run that is made."""
    model_version: NewModel | None = None
    """Each version made since the trigger was."""
    dataset: str = ""
    """Dataset of which each new version that is bound starts a run."""
    enabled: bool = True
    """While false nothing is started; what is new waits."""
    max_concurrency: Annotated[int, Meta(ge=1)] = 1
    """Runs at once; further ones wait, oldest first."""
    max_chain: Annotated[int, Meta(ge=1)] = 3
    """Triggers, one after the other, after which what a run registers starts no further one."""


class PipelineTriggerStatus(Wire, frozen=True):
    """What the trigger has done."""

    handled: list[str] = []
    """Versions that there are and were seen to, as digests."""
    last_run: str = ""
    last_event: str = ""
    """KIND/NAME of what was seen to last."""
    last_time: str | None = None
    passed_over: int = 0
    """Versions that started no run."""
    message: str = ""
    """Why the last one did not, or has to wait."""


class PipelineTrigger(OwnObject, frozen=True):
    """A run for each new version of a model or of a dataset."""

    spec: PipelineTriggerSpec
    status: PipelineTriggerStatus = PipelineTriggerStatus()
    kind: str = "PipelineTrigger"


PIPELINE_TRIGGERS = Resource(
    GROUP, VERSION, "pipelinetriggers", "PipelineTrigger", True, PipelineTrigger
)
