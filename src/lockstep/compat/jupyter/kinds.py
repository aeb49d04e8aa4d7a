"""Which of elastic-jupyter-operator's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "kubeflow.tkestack.io"
_kind = family(GROUP, "v1alpha1")

NOTEBOOK: Final = _kind(
    "JupyterNotebook", "jupyternotebooks", columns=(("Ready", "integer", ".status.readyReplicas"),)
)
GATEWAY: Final = _kind(
    "JupyterGateway", "jupytergateways", columns=(("Ready", "integer", ".status.readyReplicas"),)
)
KERNEL_SPEC: Final = _kind("JupyterKernelSpec", "jupyterkernelspecs")
KERNEL_TEMPLATE: Final = _kind("JupyterKernelTemplate", "jupyterkerneltemplates")
KERNEL: Final = _kind(
    "JupyterKernel",
    "jupyterkernels",
    columns=(("State", "string", ".status.conditions[-1:].type"),),
)

KINDS: Final[tuple[ForeignKind, ...]] = (NOTEBOOK, GATEWAY, KERNEL_SPEC, KERNEL_TEMPLATE, KERNEL)
