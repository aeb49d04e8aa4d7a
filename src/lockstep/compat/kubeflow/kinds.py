"""Which of Kubeflow's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "kubeflow.org"
_STATE: Final = (("State", "string", ".status.conditions[-1:].type"),)

PYTORCH: Final = ForeignKind(GROUP, "v1", "PyTorchJob", "pytorchjobs", columns=_STATE)
TF: Final = ForeignKind(GROUP, "v1", "TFJob", "tfjobs", columns=_STATE)
XGBOOST: Final = ForeignKind(GROUP, "v1", "XGBoostJob", "xgboostjobs", columns=_STATE)
PADDLE: Final = ForeignKind(GROUP, "v1", "PaddleJob", "paddlejobs", columns=_STATE)
JAX: Final = ForeignKind(GROUP, "v1", "JAXJob", "jaxjobs", columns=_STATE)
MPI: Final = ForeignKind(
    GROUP, "v2beta1", "MPIJob", "mpijobs", columns=_STATE, more_versions=("v1",)
)
NOTEBOOK: Final = ForeignKind(
    GROUP,
    "v1",
    "Notebook",
    "notebooks",
    columns=(("Ready", "integer", ".status.readyReplicas"),),
    more_versions=("v1beta1", "v1alpha1"),
)
TENSORBOARD: Final = ForeignKind(
    "tensorboard.kubeflow.org",
    "v1alpha1",
    "Tensorboard",
    "tensorboards",
    columns=(("Ready", "integer", ".status.readyReplicas"),),
)
PROFILE: Final = ForeignKind(
    GROUP,
    "v1",
    "Profile",
    "profiles",
    namespaced=False,
    columns=(("State", "string", ".status.conditions[-1:].type"),),
    more_versions=("v1beta1",),
)
WORKSPACE: Final = ForeignKind(
    GROUP,
    "v1beta1",
    "Workspace",
    "workspaces",
    columns=(("State", "string", ".status.state"),),
)
WORKSPACE_KIND: Final = ForeignKind(
    GROUP, "v1beta1", "WorkspaceKind", "workspacekinds", namespaced=False
)

KINDS: Final[tuple[ForeignKind, ...]] = (
    *(PYTORCH, TF, XGBOOST, PADDLE, JAX, MPI),
    *(NOTEBOOK, TENSORBOARD, PROFILE, WORKSPACE, WORKSPACE_KIND),
)
