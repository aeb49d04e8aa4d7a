"""The kinds of Argo Workflows that are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import family

GROUP: Final = "argoproj.io"
VERSION: Final = "v1alpha1"
_kind = family(GROUP, VERSION)

WORKFLOW: Final = _kind(
    "Workflow",
    "workflows",
    short_names=("wf",),
    columns=(
        ("Status", "string", ".status.phase"),
        ("Progress", "string", ".status.progress"),
        ("Message", "string", ".status.message"),
    ),
)
WORKFLOW_TEMPLATE: Final = _kind("WorkflowTemplate", "workflowtemplates", short_names=("wftmpl",))
CLUSTER_WORKFLOW_TEMPLATE: Final = _kind(
    "ClusterWorkflowTemplate",
    "clusterworkflowtemplates",
    namespaced=False,
    short_names=("cwft", "clusterwftmpl"),
)
CRON_WORKFLOW: Final = _kind(
    "CronWorkflow",
    "cronworkflows",
    short_names=("cwf", "cronwf"),
    columns=(
        ("Schedule", "string", ".spec.schedule"),
        ("Suspended", "boolean", ".spec.suspend"),
        ("Last run", "date", ".status.lastScheduledTime"),
    ),
)
KINDS: Final = (WORKFLOW, WORKFLOW_TEMPLATE, CLUSTER_WORKFLOW_TEMPLATE, CRON_WORKFLOW)
