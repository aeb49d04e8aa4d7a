"""Data processes: a pod of the user's own over a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from lockstep.api.core import PODS
from lockstep.api.meta import owner_reference
from lockstep.api.wire import Json
from lockstep.compat.fluid.objects import DataProcess, OperationStatus
from lockstep.data.core import runs
from lockstep.data.core.dataset_state import Carried
from lockstep.runtime.actions import Action, Create, Delete

_POD: Final = "pod"
"""Among what a status tells of a run by the clock: the pod that carries it out."""
_VOLUME = "lockstep-dataset"


def step(
    process: DataProcess, pods: Mapping[str, Carried], bound: bool, waits: str, now: str
) -> tuple[Sequence[Action], OperationStatus]:
    """Return what to do for *process* and what to say of it.

    *pods* are those that are there by name, *bound* is whether the dataset is, *waits* what it is
    to run after and is not over.
    """
    wrong = "" if process.spec.processor else "spec.processor is empty"
    if problem := wrong or runs.unserved(process):
        return [], runs.ended(process.status, "Failed", "NotServed", problem, now)
    if process.status.phase != "Executing":
        if waits:
            return [], OperationStatus(phase="Pending", waiting_for={"operationComplete": waits})
        if runs.between(process, now):
            return [], replace(process.status, phase=process.status.phase or "Pending")
        if not bound:
            return [], replace(process.status, phase="Pending")
    return _run(process, pods, now)


def _run(
    process: DataProcess, pods: Mapping[str, Carried], now: str
) -> tuple[Sequence[Action], OperationStatus]:
    """Return what begins a run of *process*, or how the present one does."""
    going = process.status.phase == "Executing" and bool(process.status.started_at)
    name = pod_name(process) if going else _next_name(process)
    pod, space = pods.get(name), process.metadata.namespace
    if not going:
        status = runs.begun(process, now, {_POD: name} if runs.recurs(process) else {})
        last = pods.get(pod_name(process))
        gone = [Delete(PODS, last.name, last.uid, space)] if last and last.name != name else []
        return [*gone, Create(PODS, _pod(process, name), space)], status
    if pod is not None and pod.phase == "Succeeded":
        text = f"pod {name} succeeded"
        return [], runs.ended(process.status, "Complete", "DataProcessed", text, now)
    if pod is not None and pod.phase == "Failed":
        text = f"pod {name} failed; `lockstep logs pod/{name}` says why"
        return [], runs.ended(process.status, "Failed", "DataProcessFailed", text, now)
    again = [] if pod is not None else [Create(PODS, _pod(process, name), space)]
    return again, process.status


def pod_name(process: DataProcess) -> str:
    """Return the name of the pod that carries *process* out, or did last."""
    return process.status.infos.get(_POD) or _name(process)


def _name(process: DataProcess) -> str:
    return f"{process.metadata.name[:220]}-{process.kind.removeprefix('Data').lower()}"


def _next_name(process: DataProcess) -> str:
    """Return the name of the pod of the run that begins: one for each time, however often tried."""
    return f"{_name(process)}-{int(runs.due(process))}" if runs.recurs(process) else _name(process)


def _pod(process: DataProcess, name: str) -> Json:
    spec, meta = process.spec, process.metadata
    job = (spec.processor.get("job") or {}).get("podSpec")
    script = spec.processor.get("script") or {}
    pod: Json = dict(job) if job else {"containers": [_container(script)]}
    shown = bool(spec.dataset.name)
    mount: Json = {"name": _VOLUME, "mountPath": spec.dataset.mount_path or "/data"}
    if spec.dataset.sub_path:
        mount["subPath"] = spec.dataset.sub_path
    pod["containers"] = [
        {**one, "volumeMounts": [*one.get("volumeMounts", []), *([mount] if shown else [])]}
        for one in pod["containers"]
    ]
    claim = {"claimName": spec.dataset.name}
    volumes = [*pod.get("volumes", []), *script.get("volumes", [])]
    held = [{"name": _VOLUME, "persistentVolumeClaim": claim}] if shown else []
    pod["volumes"] = [*volumes, *held]
    if account := spec.processor.get("serviceAccountName"):
        pod["serviceAccountName"] = account
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "ownerReferences": [owner_reference(process)],
        },
        "spec": {"schedulerName": "lockstep", "restartPolicy": "Never", **pod},
    }


def _container(script: Json) -> Json:
    image = str(script.get("image", "python"))
    tag = script.get("imageTag")
    command = list(script.get("command") or ["sh"])
    return {
        "name": "process",
        "image": f"{image}:{tag}" if tag else image,
        "command": [*command, "-c", str(script.get("source", ""))],
        **{name: script[name] for name in ("env", "resources", "volumeMounts") if name in script},
    }
