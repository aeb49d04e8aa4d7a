"""Revisions of a service: each set of pods that differs from the last gets a number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from lockstep.api.core import CONTROLLER_REVISIONS, ControllerRevision
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.wire import Json
from lockstep.compat.kserve.translate import Component

WRITTEN_ANNOTATION: Final = "lockstep.dev/predictor"
"""On a revision: the predictor of which it was made, as JSON."""
KEPT: Final = 10
"""Revisions that are kept for going back, beside those that serve."""


def content(component: Component) -> Json:
    """Return what makes a revision: the pods, and how they are asked whether they can serve."""
    several = {"workers": component.workers, "worker": component.worker}
    return {
        "template": component.template,
        "port": component.port,
        "grpcPort": component.grpc_port,
        "probe": component.probe,
        **(several if component.workers else {}),
    }


def digest(data: Json) -> str:
    """Return a short sum of what makes a revision."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def find(revisions: Iterable[ControllerRevision], data: Json) -> ControllerRevision | None:
    """Return the newest of *revisions* if it is made of *data*."""
    newest = max(revisions, key=lambda one: one.revision, default=None)
    if newest is not None and digest(newest.data) == digest(data):
        return newest
    return None


def make(
    service: str,
    revisions: Iterable[ControllerRevision],
    data: Json,
    meta: Json,
    written: Json | None = None,
    *,
    component: str = "predictor",
) -> Json:
    """Return the next revision of a service's *component* as it is sent to the server.

    *written* is the predictor as its user wrote it, to which the service may be rolled back.
    """
    number = max((one.revision for one in revisions), default=0) + 1
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            **meta,
            "name": f"{service}-{component}-{number:05d}",
            "labels": {ROUTE_LABEL: service},
            "annotations": {WRITTEN_ANNOTATION: json.dumps(written or {}, sort_keys=True)},
        },
        "revision": number,
        "data": data,
    }


def surplus(
    revisions: Iterable[ControllerRevision], serving: Iterable[str]
) -> list[ControllerRevision]:
    """Return the oldest revisions beyond those that are kept."""
    spare = sorted(
        (one for one in revisions if one.metadata.name not in set(serving)),
        key=lambda one: -one.revision,
    )
    return spare[KEPT:]
