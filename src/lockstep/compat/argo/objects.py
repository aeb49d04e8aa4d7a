"""Argo's kinds as resources of the API server."""

from lockstep.compat.argo import kinds

WORKFLOWS = kinds.WORKFLOW.resource
WORKFLOW_TEMPLATES = kinds.WORKFLOW_TEMPLATE.resource
CLUSTER_WORKFLOW_TEMPLATES = kinds.CLUSTER_WORKFLOW_TEMPLATE.resource
CRON_WORKFLOWS = kinds.CRON_WORKFLOW.resource
