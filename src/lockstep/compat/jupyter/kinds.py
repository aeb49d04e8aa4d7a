"""Which of elastic-jupyter-operator's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "kubeflow.tkestack.io"

NOTEBOOK: Final = ForeignKind(
    GROUP,
    "v1alpha1",
    "JupyterNotebook",
    "jupyternotebooks",
    columns=(("Ready", "integer", ".status.readyReplicas"),),
)
GATEWAY: Final = ForeignKind(
    GROUP,
    "v1alpha1",
    "JupyterGateway",
    "jupytergateways",
    columns=(("Ready", "integer", ".status.readyReplicas"),),
)
KERNEL_SPEC: Final = ForeignKind(GROUP, "v1alpha1", "JupyterKernelSpec", "jupyterkernelspecs")
KERNEL_TEMPLATE: Final = ForeignKind(
    GROUP, "v1alpha1", "JupyterKernelTemplate", "jupyterkerneltemplates"
)
KERNEL: Final = ForeignKind(
    GROUP,
    "v1alpha1",
    "JupyterKernel",
    "jupyterkernels",
    columns=(("State", "string", ".status.conditions[-1:].type"),),
)

KINDS: Final[tuple[ForeignKind, ...]] = (NOTEBOOK, GATEWAY, KERNEL_SPEC, KERNEL_TEMPLATE, KERNEL)
