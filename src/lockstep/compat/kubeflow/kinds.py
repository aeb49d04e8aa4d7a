"""Which of Kubeflow's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "kubeflow.org"
_kind, _beta = family(GROUP, "v1"), family(GROUP, "v1beta1")
_STATE: Final = (("State", "string", ".status.conditions[-1:].type"),)

PYTORCH: Final = _kind("PyTorchJob", "pytorchjobs", columns=_STATE)
TF: Final = _kind("TFJob", "tfjobs", columns=_STATE)
XGBOOST: Final = _kind("XGBoostJob", "xgboostjobs", columns=_STATE)
PADDLE: Final = _kind("PaddleJob", "paddlejobs", columns=_STATE)
JAX: Final = _kind("JAXJob", "jaxjobs", columns=_STATE)
MPI: Final = ForeignKind(
    GROUP, "v2beta1", "MPIJob", "mpijobs", columns=_STATE, more_versions=("v1",)
)
NOTEBOOK: Final = _kind(
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
PROFILE: Final = _kind(
    "Profile",
    "profiles",
    namespaced=False,
    columns=(("State", "string", ".status.conditions[-1:].type"),),
    more_versions=("v1beta1",),
)
WORKSPACE: Final = _beta("Workspace", "workspaces", columns=(("State", "string", ".status.state"),))
WORKSPACE_KIND: Final = _beta("WorkspaceKind", "workspacekinds", namespaced=False)

KINDS: Final[tuple[ForeignKind, ...]] = (
    *(PYTORCH, TF, XGBOOST, PADDLE, JAX, MPI),
    *(NOTEBOOK, TENSORBOARD, PROFILE, WORKSPACE, WORKSPACE_KIND),
)
