"""The runtimes that the Trainer brings along, for clusters where they are not installed."""

from __future__ import annotations

import copy
from typing import Final

from lockstep.api.wire import Json

STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
NODE: Final = "node"

_IMAGES: Final[dict[str, tuple[Json, str]]] = {
    "torch-distributed": ({"torch": {"numProcPerNode": "auto"}}, "pytorch/pytorch"),
    "jax-distributed": ({"jax": {}}, "nvcr.io/nvidia/jax"),
    "xgboost-distributed": ({"xgboost": {}}, "ghcr.io/kubeflow/trainer/xgboost-runtime"),
    "deepspeed-distributed": (
        {"mpi": {"numProcPerNode": 1, "mpiImplementation": "OpenMPI"}},
        "ghcr.io/kubeflow/trainer/deepspeed-runtime",
    ),
    "mlx-distributed": (
        {"mpi": {"numProcPerNode": 1, "mpiImplementation": "OpenMPI"}},
        "ghcr.io/kubeflow/trainer/mlx-runtime",
    ),
}


def built_in(name: str) -> Json | None:
    """Return the spec of the runtime *name*; None where the Trainer brings no such."""
    if name not in _IMAGES:
        return None
    policy, image = _IMAGES[name]
    jobs = [_job(NODE, image, trains="mpi" not in policy)]
    if "mpi" in policy:
        jobs.insert(0, _job("launcher", image, trains=True))
    template = {"spec": {"replicatedJobs": jobs}}
    return {"mlPolicy": {"numNodes": 1, **copy.deepcopy(policy)}, "template": template}


def _job(name: str, image: str, *, trains: bool) -> Json:
    pod = {"spec": {"containers": [{"name": NODE, "image": image}]}}
    template: Json = {"spec": {"template": pod}}
    if trains:
        template["metadata"] = {"labels": {STEP: "trainer"}}
    return {"name": name, "template": template}
