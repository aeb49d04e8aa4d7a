"""Replicas of several pods: one that answers requests, and workers beside it."""

from __future__ import annotations

import copy
from typing import Final

from lockstep.api.wire import Json
from lockstep.compat.kserve.objects import ServingRuntime
from lockstep.compat.kserve.problem import Problem

WORKER: Final = "worker-container"
_SIZES: Final = ("pipelineParallelSize", "tensorParallelSize")
_FIELD: Final = "spec.predictor.workerSpec"


def split(pod: Json, stated: Json, runtime: ServingRuntime | None) -> tuple[int, Json]:
    """Return how many workers each replica has, and what they are.

    By KServe's rules: nodes by ``pipelineParallelSize``, GPUs of each by ``tensorParallelSize``.
    *pod*, the one that answers, gets these sizes as variables and resources as well.

    Raises:
        Problem: when a size makes no sense, or nothing says what the workers run.
    """
    base = copy.deepcopy(runtime.spec.worker_spec or {}) if runtime is not None else {}
    merged = {**base, **{k: copy.deepcopy(v) for k, v in stated.items() if k != "containers"}}
    nodes, gpus = (_size(merged, name) for name in _SIZES)
    containers = base.get("containers") or []
    for one in stated.get("containers") or []:
        same = [c for c in containers if c.get("name") == one.get("name")]
        if same:
            same[0].update(copy.deepcopy(one))
        else:
            containers.append(copy.deepcopy(one))
    if not containers:
        head = copy.deepcopy(pod["containers"][0])
        head["name"] = WORKER
        head.pop("readinessProbe", None)
        containers = [head]
    if any(not one.get("image") for one in containers):
        head_image = pod["containers"][0].get("image")
        for one in containers:
            one.setdefault("image", head_image)
    merged["containers"] = containers
    for key in ("volumes", "initContainers"):
        if pod.get(key) and key not in merged:
            merged[key] = copy.deepcopy(pod[key])
    variables = {
        "PIPELINE_PARALLEL_SIZE": str(nodes),
        "TENSOR_PARALLEL_SIZE": str(gpus),
        "RAY_NODE_COUNT": str(nodes),
        "REQUEST_GPU_COUNT": str(gpus),
    }
    for one in (pod["containers"][0], containers[0]):
        _tell(one, variables)
        if stated.get("tensorParallelSize"):
            limits = one.setdefault("resources", {}).setdefault("limits", {})
            limits.setdefault("nvidia.com/gpu", gpus)
    return nodes - 1, {"labels": {}, "annotations": {}, "spec": merged}


def _size(worker: Json, name: str) -> int:
    """Take a size out of a worker's spec; it is the least allowed one where none is stated."""
    least = 2 if name == "pipelineParallelSize" else 1
    value = worker.pop(name, None)
    value = least if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Problem(f"{_FIELD}.{name}", value, f"a whole number from {least} is needed")
    return value


def _tell(container: Json, variables: dict[str, str]) -> None:
    names = {one["name"] for one in container.get("env", [])}
    container["env"] = [
        *container.get("env", []),
        *({"name": k, "value": v} for k, v in variables.items() if k not in names),
    ]
