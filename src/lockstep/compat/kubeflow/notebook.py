"""Kubeflow's Notebook: the fields that are read, and its status in Kubeflow's words."""

from __future__ import annotations

from typing import Final

from lockstep.api.core import Pod
from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import Json, Wire, to_builtins
from lockstep.compat.kubeflow.kinds import GROUP, NOTEBOOK

STOPPED: Final = "kubeflow-resource-stopped"
"""Annotation: there, it stops the notebook; its value says when that was asked for."""
LAST_ACTIVITY: Final = "notebooks.kubeflow.org/last-activity"
NAME_LABEL: Final = "notebook-name"
SET_LABEL: Final = "statefulset"
KERNELS_ANNOTATION: Final = "lockstep.dev/kernels"
"""On a Notebook: ``remote`` lets its kernels run in pods of their own, through the gateway."""
IMAGE: Final = "kubeflownotebookswg/jupyter-scipy:v1.10.0"
"""Image of notebooks of kinds that name none."""
PORT: Final = 8888


class NotebookSpec(Wire, frozen=True):
    """What a notebook runs; the pod spec stays a plain tree."""

    template: Json = {}


class Notebook(Wire, frozen=True):
    """A notebook server."""

    metadata: ObjectMeta
    spec: NotebookSpec = NotebookSpec()
    status: Json = {}
    api_version: str = f"{GROUP}/{NOTEBOOK.version}"
    kind: str = NOTEBOOK.kind

    @property
    def pod_spec(self) -> Json:
        """Return the spec of its pod, as its user wrote it."""
        found = self.spec.template.get("spec")
        return found if isinstance(found, dict) else {}


NOTEBOOKS: Final = NOTEBOOK.read_as(Notebook)


def prefix(meta: ObjectMeta) -> str:
    """Return the path below which a notebook answers."""
    return f"/notebook/{meta.namespace}/{meta.name}"


def status(notebook: Notebook, pod: Pod | None) -> Json:
    """Return the status of *notebook* as Kubeflow's controller mirrors it from its *pod*."""
    if pod is None:
        return {"conditions": [], "containerState": {}, "readyReplicas": 0}
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    names = [one.name for one in pod.status.container_statuses]
    main = notebook.metadata.name if notebook.metadata.name in names else next(iter(names), "")
    state = next((one.state for one in pod.status.container_statuses if one.name == main), None)
    return {
        "conditions": [
            {
                "type": one.type,
                "status": one.status,
                **({"reason": one.reason} if one.reason else {}),
                **({"message": one.message} if one.message else {}),
                **(
                    {"lastTransitionTime": one.last_transition_time}
                    if one.last_transition_time
                    else {}
                ),
            }
            for one in pod.status.conditions
        ],
        "containerState": to_builtins(state) if state is not None else {},
        "readyReplicas": int(ready),
    }
