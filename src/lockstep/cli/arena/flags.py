"""Arena's flags as a table: how each is spelled, what it takes, which jobs have it.

Facts: kubeflow/arena:pkg/argsbuilder (2026-07).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["text", "number", "switch", "list", "time"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag; its value is found under its name with ``_`` in place of ``-``."""

    name: str
    kind: Kind = "text"
    default: object = None
    short: str = ""
    also: tuple[str, ...] = ()
    """Older spellings."""
    becomes: str = ""
    """Where it goes in the TrainingJob; empty where it cannot be honoured and is refused."""
    help: str = ""


GLOBAL: Final = (
    Flag("loglevel", default="info", becomes="(nothing: errors alone are printed)"),
    Flag("namespace", short="n", becomes="metadata.namespace"),
    Flag("config", becomes="(the kubeconfig)"),
    Flag("arena-namespace", becomes="(nothing: no such namespace is needed)"),
    Flag("helm-binary", becomes="(nothing: no charts are used)"),
    Flag("pprof", "switch", becomes="(nothing: for developers of Arena)"),
    Flag("trace", "switch", becomes="(nothing: for developers of Arena)"),
)
_SYNC: Final = (
    Flag("sync-mode", also=("syncMode",), becomes="template.initContainers", help="git"),
    Flag("sync-source", also=("syncSource",), becomes="template.initContainers"),
    Flag("sync-image", also=("syncImage",), becomes="template.initContainers"),
)
_TENSORBOARD: Final = (
    Flag("tensorboard", "switch", becomes="(a job beside it: NAME-tensorboard)"),
    Flag("tensorboard-image", also=("tensorboardImage",), becomes="(the image of that)"),
    Flag("logdir", default="/training_logs", becomes="template.volumes"),
)
COMMON: Final = (
    Flag("name", becomes="metadata.name"),
    Flag("image", becomes="template.containers.image"),
    Flag("gpus", "number", 0, becomes="template.containers.resources", help="of each worker"),
    Flag("device", "list", becomes="template.containers.resources", help="amd.com/gpu=1"),
    Flag("workers", "number", 1, becomes="roles.replicas"),
    Flag("retry", "number", 0, becomes="recovery.maxRestarts"),
    Flag(
        "working-dir",
        default="/root",
        also=("workingDir",),
        becomes="template.containers.workingDir",
    ),
    Flag("env", "list", short="e", becomes="template.containers.env", help="K=V"),
    Flag("data", "list", short="d", becomes="template.volumes", help="CLAIM:PATH[:PART]"),
    Flag("data-dir", "list", also=("dataDir",), becomes="template.volumes", help="PATH[:PATH]"),
    Flag("annotation", "list", short="a", becomes="metadata.annotations, template", help="K=V"),
    Flag("label", "list", short="l", becomes="metadata.labels, template", help="K=V"),
    Flag("gang", "switch", becomes="(nothing: the pods of a job are always placed together)"),
    Flag("priority", short="p", becomes="priorityClassName"),
    Flag("queue", "switch", becomes="(nothing: all jobs are queued)"),
    Flag("toleration", "list", becomes="template.tolerations", help="K[=V[:EFFECT[,OPERATOR]]]"),
    Flag("selector", "list", becomes="template.nodeSelector", help="K=V"),
    Flag("config-file", "list", becomes="(a ConfigMap), template.volumes", help="FILE:PATH"),
    Flag(
        "image-pull-secret",
        "list",
        also=("image-pull-secrets",),
        becomes="template.imagePullSecrets",
    ),
    Flag("image-pull-policy", default="Always", becomes="template.containers.imagePullPolicy"),
    Flag("shell", default="sh", becomes="template.containers.command", help="sh or bash"),
    Flag("scheduler", becomes="(nothing but a check: the scheduler is Lockstep's)"),
    Flag("hostNetwork", "switch", becomes="template.hostNetwork"),
    Flag("hostIPC", "switch", becomes="template.hostIPC"),
    Flag("hostPID", "switch", becomes="template.hostPID"),
    Flag("rdma", "switch", becomes="template.containers.resources"),
    Flag("model-name"),
    Flag("model-source"),
    *_SYNC,
    *_TENSORBOARD,
)
_SIZE: Final = (
    Flag("cpu", becomes="template.containers.resources"),
    Flag("memory", becomes="template.containers.resources"),
)
_SHARED: Final = Flag("share-memory", default="2Gi", becomes="template.volumes")
_TIMES: Final = (
    Flag("running-timeout", "time", becomes="runPolicy.activeDeadline"),
    Flag("ttl-after-finished", "time", becomes="runPolicy.timeToLive"),
)
_LAUNCHED: Final = (
    Flag("launcher-selector", "list", becomes="template.nodeSelector"),
    Flag("worker-selector", "list", becomes="template.nodeSelector"),
    Flag("job-restart-policy", becomes="recovery.maxRestarts", help="Never or OnFailure"),
    Flag("worker-restart-policy"),
    Flag("job-backoff-limit", "number", 6, becomes="recovery.maxRestarts"),
    Flag("ssh-secret"),
    Flag("launcher-annotation", "list", becomes="template.metadata.annotations"),
    Flag("worker-annotation", "list", becomes="template.metadata.annotations"),
)


def _clean(default: str) -> Flag:
    old = ("cleanTaskPolicy",)
    return Flag("clean-task-policy", default=default, also=old, becomes="runPolicy.cleanPods")


def _of_role(role: str) -> tuple[Flag, ...]:
    """Return the flags of tfjob about the pods of one type."""
    olds = {"worker": "worker", "ps": "ps", "chief": "Chief", "evaluator": "evaluator"}
    found = [
        Flag(f"{role}-cpu", also=(f"{olds[role]}Cpu",), becomes="template.containers.resources"),
        Flag(
            f"{role}-memory", also=(f"{olds[role]}Memory",), becomes="template.containers.resources"
        ),
        Flag(f"{role}-cpu-limit", becomes="template.containers.resources"),
        Flag(f"{role}-memory-limit", becomes="template.containers.resources"),
        Flag(f"{role}-selector", "list", becomes="template.nodeSelector"),
    ]
    if role in ("worker", "ps"):
        found += [
            Flag(f"{role}-image", also=(f"{role}Image",), becomes="template.containers.image"),
            Flag(f"{role}-affinity-policy", default="none"),
            Flag(f"{role}-affinity-constraint", default="preferred"),
        ]
    if role != "evaluator":
        port = "(nothing: each pod has a port of its own)"
        found.append(Flag(f"{role}-port", "number", 0, also=(f"{role}Port",), becomes=port))
    return tuple(found)


_TF: Final = (
    Flag("ps", "number", 0, becomes="roles"),
    Flag("chief", "switch", becomes="roles"),
    Flag("evaluator", "switch", becomes="roles"),
    Flag("ps-gpus", "number", 0, becomes="template.containers.resources"),
    *(flag for role in ("worker", "ps", "chief", "evaluator") for flag in _of_role(role)),
    Flag("success-policy", default="ChiefWorker", becomes="successPolicy"),
    Flag("role-sequence", becomes="roles (their order)"),
    Flag("starting-timeout", "time", becomes="maxWait"),
    _clean("Running"),
    *_TIMES,
    _SHARED,
)
_ET: Final = (
    *_SIZE,
    Flag("max-workers", "number", 1000, becomes="roles.max"),
    Flag("min-workers", "number", 1, becomes="roles.min"),
    Flag("spot-instance", "switch"),
    Flag("max-wait-time", "number", 0, becomes="maxWait"),
    *_LAUNCHED,
)
_VOLCANO: Final = (
    Flag("min-available", "number", 1, also=("minAvailable",), becomes="(met: all start at once)"),
    Flag("queue", default="default", becomes="queue"),
    Flag("scheduler-name", default="volcano", also=("schedulerName",), becomes="(nothing)"),
    Flag("task-name", default="task", also=("taskName",), becomes="roles.name"),
    Flag(
        "task-images",
        "list",
        ("ubuntu", "nginx", "busybox"),
        also=("taskImages",),
        becomes="roles, template.containers.image",
    ),
    Flag("task-replicas", "number", 1, also=("taskReplicas",), becomes="roles.replicas"),
    Flag("task-cpu", default="250m", also=("taskCPU",), becomes="template.containers.resources"),
    Flag(
        "task-memory",
        default="128Mi",
        also=("taskMemory",),
        becomes="template.containers.resources",
    ),
    Flag("task-port", "number", 2222, also=("taskPort",), becomes="template.containers.ports"),
)
_AUTOSCALER: Final = {
    "cpu": "500m",
    "memory": "512Mi",
    "image": "",
    "image-pull-policy": "IfNotPresent",
    "idle-timeout-seconds": "60",
    "upscaling-mode": "Default",
}
_RAY: Final = (
    Flag("worker-replicas", "number", 0, becomes="roles.replicas", help="--workers by default"),
    Flag("worker-min-replicas", "number", 0, becomes="roles.min"),
    Flag("worker-max-replicas", "number", 0, becomes="roles.max"),
    Flag("worker-num-of-hosts", "number", 1),
    *(
        flag
        for role in ("head", "worker")
        for flag in (
            Flag(f"{role}-image", becomes="template.containers.image"),
            Flag(f"{role}-cpu", becomes="template.containers.resources"),
            Flag(f"{role}-memory", becomes="template.containers.resources"),
            Flag(f"{role}-gpu", "number", 0, becomes="template.containers.resources"),
        )
    ),
    Flag("head-service-type", default="ClusterIP", becomes="(nothing: a name leads to the head)"),
    Flag("ray-version", becomes="(nothing: it is that of the image)"),
    Flag("suspend", "switch", becomes="suspend"),
    Flag("shutdown-after-finished", "switch", True, becomes="(nothing: the cluster always ends)"),
    Flag("active-deadline-seconds", "time", becomes="runPolicy.activeDeadline", help="as 2m"),
    Flag("ttl-after-finished", "time", becomes="runPolicy.timeToLive"),
    Flag("pre-stop-command", default="ray stop"),
    Flag("enable-autoscaling", "switch"),
    *(Flag(f"autoscaler-{name}", default=default) for name, default in _AUTOSCALER.items()),
    Flag("share-memory", default="", becomes="template.volumes"),
)
_SPARK: Final = (
    Flag("image", default="spark:3.5.0", becomes="template.containers.image"),
    Flag("replicas", "number", 1, becomes="roles.replicas"),
    Flag(
        "main-class",
        default="org.apache.spark.examples.SparkPi",
        becomes="template.containers.command",
    ),
    Flag(
        "jar",
        default="local:///opt/spark/examples/jars/spark-examples_2.12-3.5.0.jar",
        becomes="template.containers.command",
    ),
    Flag("spark-version", becomes="(nothing: it is that of the image)"),
    Flag("driver-service-account", becomes="template.serviceAccountName"),
    *(
        flag
        for role in ("driver", "executor")
        for flag in (
            Flag(f"{role}-cpu-request", "number", 1, becomes="template.containers.resources"),
            Flag(
                f"{role}-memory-request",
                default="500m",
                becomes="template.containers.resources",
                help="in Spark's units: 500m, 2g",
            ),
        )
    ),
)
_NAMED: Final = tuple(f for f in COMMON if f.name in ("name", "annotation", "label"))

TYPES: Final[dict[str, tuple[Flag, ...]]] = {
    "pytorchjob": (
        *COMMON,
        *_SIZE,
        _clean("Running"),
        *_TIMES,
        _SHARED,
        Flag("nproc-per-node", becomes="roles.processesPerNode"),
    ),
    "tfjob": (*COMMON, *_TF),
    "mpijob": (
        *COMMON,
        *_SIZE,
        Flag("gputopology", "switch", becomes="alignment"),
        Flag("mounts-on-launcher", "switch", becomes="template.volumes"),
        _clean("All"),
    ),
    "horovodjob": (*COMMON, *_SIZE, Flag("ssh-port", "number", 0, becomes="template.env")),
    "etjob": (*COMMON, *_ET),
    "deepspeedjob": (*COMMON, *_SIZE, *_LAUNCHED),
    "volcanojob": (*_NAMED, *_VOLCANO),
    "rayjob": (*COMMON, *_RAY),
    "sparkjob": (*_NAMED, *_SPARK),
}
"""Flags of the jobs that ``arena submit`` makes."""
NAMES: Final[dict[str, str]] = {
    "pytorch": "pytorchjob",
    "tf": "tfjob",
    "mpi": "mpijob",
    "mj": "mpijob",
    "horovod": "horovodjob",
    "hj": "horovodjob",
    "et": "etjob",
    "dp": "deepspeedjob",
    "vj": "volcanojob",
    "ray": "rayjob",
    "rj": "rayjob",
    "spark": "sparkjob",
}
"""Other names of their types."""
