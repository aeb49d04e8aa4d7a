"""The kinds of Kubeflow Pipelines that are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "pipelines.kubeflow.org"
VERSION: Final = "v2beta1"
_kind = family(GROUP, VERSION)

PIPELINE: Final = _kind("Pipeline", "pipelines")
PIPELINE_VERSION: Final = _kind(
    "PipelineVersion", "pipelineversions", columns=(("Pipeline", "string", ".spec.pipelineName"),)
)
SCHEDULED_WORKFLOW: Final = ForeignKind(
    "kubeflow.org",
    "v1beta1",
    "ScheduledWorkflow",
    "scheduledworkflows",
    short_names=("swf",),
    columns=(
        ("Enabled", "boolean", ".spec.enabled"),
        ("Last run", "date", ".status.trigger.lastTriggeredTime"),
    ),
)
KINDS: Final = (PIPELINE, PIPELINE_VERSION, SCHEDULED_WORKFLOW)

PIPELINES: Final = PIPELINE.resource
PIPELINE_VERSIONS: Final = PIPELINE_VERSION.resource
SCHEDULED_WORKFLOWS: Final = SCHEDULED_WORKFLOW.resource
