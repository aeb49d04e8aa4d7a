"""Kubeflow's training jobs, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.wire import Json
from lockstep.compat.translation import Strict

Count = Annotated[int, Meta(ge=0)]


class SchedulingPolicy(Strict, frozen=True):
    """How its pods are placed.

    All pods of a job are placed at once, so that the fewest pods or resources with which it may
    start, and how long a part of them is held for the rest, are met by any value.
    """

    min_available: Count | None = None
    queue: str = ""
    min_resources: Json = {}
    priority_class: str = ""
    schedule_timeout_seconds: Count | None = None


class RunPolicy(Strict, frozen=True):
    """When the job ends and what is left of it."""

    clean_pod_policy: Literal["None", "Running", "All", ""] = ""
    ttl_seconds_after_finished: Count | None = None
    active_deadline_seconds: Count | None = None
    backoff_limit: Count | None = None
    scheduling_policy: SchedulingPolicy | None = None
    suspend: bool | None = None
    managed_by: str = ""


class ReplicaSpec(Strict, frozen=True):
    """Pods that are alike."""

    template: Json
    replicas: Annotated[int, Meta(ge=1)] = 1
    restart_policy: Literal["Always", "OnFailure", "Never", "ExitCode", ""] = ""


class ElasticPolicy(Strict, frozen=True):
    """Between which sizes a job may change; how its ranks meet is the launcher's affair."""

    min_replicas: Annotated[int, Meta(ge=1)] | None = None
    max_replicas: Annotated[int, Meta(ge=1)] | None = None
    n_proc_per_node: Annotated[int, Meta(ge=1)] | None = None
    max_restarts: Count | None = None
    rdzv_backend: Literal["c10d", "etcd", "etcd-v2", ""] = ""
    rdzv_port: int | None = None
    rdzv_host: str = ""
    rdzv_id: str = ""
    rdzv_conf: list[Json] = []
    standalone: bool = False


class PyTorchJobSpec(Strict, frozen=True):
    """What a PyTorchJob says."""

    pytorch_replica_specs: dict[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()
    elastic_policy: ElasticPolicy | None = None
    nproc_per_node: str | int | None = None


class ReplicatedSpec(Strict, frozen=True):
    """What the other jobs say; the field of the replicas has another name in each."""

    replica_specs: dict[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()
    success_policy: Literal["AllWorkers", ""] = ""
    enable_dynamic_worker: bool = False
    slots_per_worker: Annotated[int, Meta(ge=1)] | None = None
    run_launcher_as_worker: bool = False
    ssh_auth_mount_path: str = ""
    launcher_creation_policy: Literal["AtStartup", "WaitForWorkersReady", ""] = ""
    """Met by either: the launcher waits for its workers."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH", ""] = ""
    """Any: launchers are told in the words of all."""
    clean_pod_policy: Literal["None", "Running", "All", ""] = ""
