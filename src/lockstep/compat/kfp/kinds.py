"""The kinds of Kubeflow Pipelines that are served."""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "pipelines.kubeflow.org"
VERSION: Final = "v2beta1"

PIPELINE: Final = ForeignKind(GROUP, VERSION, "Pipeline", "pipelines")
PIPELINE_VERSION: Final = ForeignKind(
    GROUP,
    VERSION,
    "PipelineVersion",
    "pipelineversions",
    columns=(("Pipeline", "string", ".spec.pipelineName"),),
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


def _resource(kind: ForeignKind) -> Resource[Any]:
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced, AnyObject)


PIPELINES: Final = _resource(PIPELINE)
PIPELINE_VERSIONS: Final = _resource(PIPELINE_VERSION)
SCHEDULED_WORKFLOWS: Final = _resource(SCHEDULED_WORKFLOW)
