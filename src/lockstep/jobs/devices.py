"""What a job's pods are told about the devices of their nodes, and what they ask of them."""

from __future__ import annotations

from lockstep.api.names import (
    ALIGN_PREFERRED_ANNOTATION,
    ALIGN_REQUIRED_ANNOTATION,
    HCAS_ANNOTATION,
    NICS,
)
from lockstep.api.training import Role, TrainingJob
from lockstep.api.wire import Json

HCAS = "LOCKSTEP_HCAS"
"""The variable with the names of a pod's NICs."""
NCCL_HCAS = "NCCL_IB_HCA"


def alignment(job: TrainingJob, role: Role) -> dict[str, str]:
    """Return the annotations by which pods of a role ask for aligned devices.

    What the role says stands in place of all that the job says.
    """
    wish = role.alignment if role.alignment is not None else job.spec.alignment
    found = {
        ALIGN_REQUIRED_ANNOTATION: ",".join(wish.required) if wish else "",
        ALIGN_PREFERRED_ANNOTATION: ",".join(wish.preferred) if wish else "",
    }
    return {name: value for name, value in found.items() if value}


def tell_nics(container: Json) -> None:
    """Have a container that asks for NICs use those it gets, unless it says itself which.

    Which they are is written on the pod with its binding. NCCL takes a name as the beginning of
    names unless "=" stands before it.
    """
    resources = container.get("resources") or {}
    asked = (resources.get("limits") or {}) | (resources.get("requests") or {})
    own = container.get("env") or []
    if NICS not in asked or any(variable["name"] in (HCAS, NCCL_HCAS) for variable in own):
        return
    path = f"metadata.annotations['{HCAS_ANNOTATION}']"
    container["env"] = [
        {"name": HCAS, "valueFrom": {"fieldRef": {"fieldPath": path}}},
        {"name": NCCL_HCAS, "value": f"=$({HCAS})"},
        *own,
    ]
