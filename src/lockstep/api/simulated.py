"""Whether pods may go to nodes that only pretend, and what lets them go there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.api.core import Pod
from lockstep.api.names import NODE_KIND_LABEL, SIMULATED_TAINT
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json

TOLERATION: Json = {"key": SIMULATED_TAINT, "operator": "Exists"}
"""What a pod bears that may go to simulated nodes."""
SIMULATED = "simulated"


def send_to_simulated(spec: Json) -> None:
    """Let the pod with that *spec* go to simulated nodes, and nowhere else."""
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), NODE_KIND_LABEL: SIMULATED}
    borne = spec.get("tolerations") or []
    if TOLERATION not in borne:
        spec["tolerations"] = [*borne, TOLERATION]


def pretends(job: TrainingJob) -> bool:
    """Say whether a pod of *job* may go to a node that does not run its command."""
    return job.spec.simulated or any(
        _says_so(role.template.get("spec") or {}) for role in job.spec.roles
    )


def pod_pretends(pod: Pod) -> bool:
    """Say whether a pod is, or can only be, on a node that does not run its command."""
    if pod.spec.node_selector.get(NODE_KIND_LABEL) == SIMULATED:
        return True
    runs = (status.container_id for status in pod.status.container_statuses)
    return any(runs_as.startswith(f"{SIMULATED}://") for runs_as in runs)


def _says_so(spec: Mapping[str, Any]) -> bool:
    borne = spec.get("tolerations") if isinstance(spec, Mapping) else None
    return any(isinstance(t, Mapping) and t.get("key") == SIMULATED_TAINT for t in borne or ())
