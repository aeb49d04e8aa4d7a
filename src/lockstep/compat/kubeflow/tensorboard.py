"""Kubeflow's Tensorboard: the fields that are read, the notebook it becomes, its status.

A TensorBoard is a page of a user as a notebook is. It is made into a Notebook, which brings it a
pod in a queue, a service, a link, and ``lockstep dev stop`` and ``resume``.
"""

from __future__ import annotations

from typing import Final

from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import Json, Wire
from lockstep.compat.kubeflow.kinds import TENSORBOARD
from lockstep.compat.kubeflow.notebook import PORT, Notebook
from lockstep.compat.translation import Refused

IMAGE: Final = "tensorflow/tensorflow:2.19.0"
APP_LABEL: Final = "lockstep.dev/app"
"""On a Notebook that is no JupyterLab: what it is."""
LOGS: Final = "/logs"
STORES: Final = ("s3://", "gs://", "az://", "http://", "https://")


class TensorboardSpec(Wire, frozen=True):
    """Where the events are."""

    logspath: str = ""


class Tensorboard(Wire, frozen=True):
    """A TensorBoard over a directory of events."""

    metadata: ObjectMeta
    spec: TensorboardSpec = TensorboardSpec()
    status: Json = {}
    api_version: str = f"{TENSORBOARD.group}/{TENSORBOARD.version}"
    kind: str = TENSORBOARD.kind


TENSORBOARDS: Final = TENSORBOARD.read_as(Tensorboard)


def notebook(board: Tensorboard) -> Json:
    """Return the Notebook that serves *board*, owned by it.

    Raises:
        Refused: when ``spec.logspath`` is neither a claim's nor a store's.
    """
    about = board.metadata
    owner = {
        "apiVersion": board.api_version,
        "kind": board.kind,
        "name": about.name,
        "uid": about.uid,
        "controller": True,
    }
    place, volume = _place(board.spec.logspath)
    made = app(about.name, place, volume, about.labels)
    made["metadata"] |= {"namespace": about.namespace, "ownerReferences": [owner]}
    return made


def app(name: str, place: str, volume: Json | None, labels: dict[str, str]) -> Json:
    """Return a Notebook called *name* that runs TensorBoard over the directory *place*.

    *volume* is the source of the volume that holds *place* at :data:`LOGS` or at its own path.
    """
    container: Json = {
        "name": name,
        "image": IMAGE,
        "command": [
            *("python", "-m", "tensorboard.main", f"--logdir={place}", "--bind_all"),
            *(f"--port={PORT}", "--path_prefix=$(NB_PREFIX)", "--load_fast=false"),
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
    }
    spec: Json = {"containers": [container]}
    if volume is not None:
        mount = place if "hostPath" in volume else LOGS
        container["volumeMounts"] = [{"name": "logs", "mountPath": mount, "readOnly": True}]
        spec["volumes"] = [{"name": "logs", **volume}]
    return {
        "metadata": {"name": name, "labels": {**labels, APP_LABEL: "tensorboard"}},
        "spec": {"template": {"spec": spec}},
    }


def _place(logs: str) -> tuple[str, Json | None]:
    if logs.startswith(STORES):
        return logs, None
    claim, _, below = logs.removeprefix("pvc://").partition("/")
    if not logs.startswith("pvc://") or not claim:
        remedy = "say pvc://CLAIM/DIRECTORY or the address of a store, as s3://BUCKET/DIRECTORY"
        raise Refused("spec.logspath", logs, remedy)
    if ".." in below.split("/"):
        raise Refused("spec.logspath", logs, "name a directory of the claim without '..'")
    return f"{LOGS}/{below}".rstrip("/"), {"persistentVolumeClaim": {"claimName": claim}}


def status(board: Tensorboard, made: Notebook | None, problem: str, now: str) -> Json:
    """Return the status of *board* in Kubeflow's words, given its notebook and what is wrong."""
    ready = int((made.status.get("readyReplicas") if made else 0) or 0)
    state = "Failed" if problem else "Available" if ready else "Progressing"
    there = board.status.get("conditions") or []
    if there and there[-1].get("deploymentState") == state:
        return {"conditions": there, "readyReplicas": ready}
    condition = {"deploymentState": state, "lastProbeTime": now}
    return {"conditions": [*there[-9:], condition], "readyReplicas": ready}
