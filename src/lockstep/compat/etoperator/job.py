"""et-operator's elastic jobs: a launcher and workers whose number may change."""

from __future__ import annotations

from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.etoperator.kinds import GROUP
from lockstep.compat.etoperator.objects import Replicas, TrainingJobSpec
from lockstep.compat.pods import queue_of, template
from lockstep.compat.translation import Refused, Translation, read

USUAL_BACKOFF: Final = 6
MOST: Final = 512
"""Workers that a job may grow to unless it says."""
_AT: Final = "spec.etReplicaSpecs"
_FILES: Final = (
    ("lockstep-et-edl", "/etc/edl", (("machinefile", "hostfile"), ("discover_hosts.sh",) * 2)),
    ("lockstep-et-job", "/job", (("hostfile", "hostfile"),)),
)
"""Volumes of the launcher: their place, and which files of the job lie there under which name."""


def to_native(obj: AnyObject) -> Translation:
    """Return *obj* as a TrainingJob of ours.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, TrainingJobSpec)
    launcher, worker = spec.et_replica_specs.launcher, spec.et_replica_specs.worker
    if launcher.replicas != 1:
        raise Refused(f"{_AT}.launcher.replicas", launcher.replicas, "must be 1")
    roles = [_role(obj, "launcher", launcher), _role(obj, "worker", worker)]
    roles[0]["identity"]["name"] = "{job}-launcher"
    _files(obj, roles[0]["template"])
    roles[1] |= _sizes(obj, worker)
    if spec.slots_per_worker is not None:
        roles[1]["processesPerNode"] = spec.slots_per_worker
    again = USUAL_BACKOFF if spec.backoff_limit is None else spec.backoff_limit
    job = native.training_job(
        obj,
        "mpi",
        roles,
        restarts=0 if spec.restart_policy == "Never" else again,
        clean=spec.clean_pod_policy or "Running",
        queue=queue_of(obj.metadata.labels, obj.metadata.namespace),
    )
    return Translation((job,))


def target(obj: AnyObject) -> list[str]:
    """Return the names of the workers that the job should have now."""
    given = obj.status.get("targetWorkers")
    if isinstance(given, list) and given:
        return [str(name) for name in given]
    workers = read(obj.spec, TrainingJobSpec).et_replica_specs.worker
    return [worker_name(obj.metadata.name, i) for i in range(workers.replicas)]


def bounds(obj: AnyObject) -> tuple[int, int]:
    """Return the fewest and the most workers that the job may have."""
    worker = read(obj.spec, TrainingJobSpec).et_replica_specs.worker
    most = max(MOST, worker.replicas) if worker.max_replicas is None else worker.max_replicas
    return worker.min_replicas or 1, most


def worker_name(job: str, index: int) -> str:
    """Return the name of a worker's pod."""
    return f"{job}-worker-{index}"


def index_of(job: str, name: str) -> int | None:
    """Return the index in the name of a worker's pod; None when it is none."""
    number = name.removeprefix(f"{job}-worker-")
    return int(number) if number.isdecimal() and worker_name(job, int(number)) == name else None


def _sizes(obj: AnyObject, worker: Replicas) -> Json:
    low, high = bounds(obj)
    for field, value, wrong in (
        ("minReplicas", low, low > worker.replicas),
        ("maxReplicas", high, high < worker.replicas),
    ):
        if wrong:
            allowed = f"must be at {'most' if field == 'minReplicas' else 'least'} replicas, "
            raise Refused(f"{_AT}.worker.{field}", value, f"{allowed}{worker.replicas}")
    there = {i for name in target(obj) if (i := index_of(obj.metadata.name, name)) is not None}
    last = max(there, default=0)
    missing = [i for i in range(last) if i not in there]
    sizes: Json = {"replicas": len(there), "min": low, "max": high}
    return sizes | ({"omit": missing} if missing else {})


def _role(obj: AnyObject, name: str, replicas: Replicas) -> Json:
    return {
        "name": name,
        "replicas": replicas.replicas,
        "template": template(replicas.template, f"{_AT}.{name}.template"),
        "identity": {
            "labels": {
                "group-name": GROUP,
                "training-job-name": obj.metadata.name,
                "training-job-role": name,
                **({"replica-index": "{index}"} if name == "worker" else {}),
            }
        },
    }


def _files(obj: AnyObject, made: Json) -> None:
    config = f"{obj.metadata.name}-config"
    for volume, path, files in _FILES:
        items = [{"key": key, "path": name, "mode": 0o555} for key, name in files]
        native.mount(made, volume, path, {"configMap": {"name": config, "items": items}})
