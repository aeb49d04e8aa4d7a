"""Kubeflow's kinds, as they are served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.kubeflow import jobs, kinds, others, pytorch, status, workspace
from lockstep.compat.translation import Source, Translation, translating, translating_with


def _source(kind: ForeignKind, translate: Callable[[AnyObject], Translation]) -> Source:
    return Source(
        kind,
        translating(translate),
        status.status_of,
        ended=status.ended,
        manager=jobs.manager,
    )


SOURCES: Final = (
    _source(kinds.PYTORCH, pytorch.to_native),
    _source(kinds.TF, others.TF.to_native),
    _source(kinds.XGBOOST, others.XGBOOST.to_native),
    _source(kinds.PADDLE, others.PADDLE.to_native),
    _source(kinds.JAX, others.JAX.to_native),
    _source(kinds.MPI, others.MPI.to_native),
    Source(
        kinds.WORKSPACE,
        translating_with(workspace.to_native),
        workspace.status_of,
        reads=(kinds.WORKSPACE_KIND,),
    ),
)
