"""Argo's kinds as resources of the API server."""

from __future__ import annotations

from typing import Any

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.compat.argo import kinds
from lockstep.compat.foreign_kinds import ForeignKind


def _resource(kind: ForeignKind) -> Resource[Any]:
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced, AnyObject)


WORKFLOWS = _resource(kinds.WORKFLOW)
WORKFLOW_TEMPLATES = _resource(kinds.WORKFLOW_TEMPLATE)
CLUSTER_WORKFLOW_TEMPLATES = _resource(kinds.CLUSTER_WORKFLOW_TEMPLATE)
CRON_WORKFLOWS = _resource(kinds.CRON_WORKFLOW)
