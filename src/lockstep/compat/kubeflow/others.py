"""Kubeflow's other jobs of version 1: TFJob, XGBoostJob, PaddleJob, JAXJob and MPIJob.

Facts: kubeflow/training-operator@release-1.9:pkg/controller.v1, and of the MPIJob
kubeflow/mpi-operator:pkg/controller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from msgspec import structs

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.kubeflow import jobs
from lockstep.compat.kubeflow.objects import ReplicaSpec, ReplicatedSpec
from lockstep.compat.translation import Refused, Translation, read

Replicas = dict[str, ReplicaSpec]

SSH_MOUNT: Final = "/root/.ssh"


@dataclass(frozen=True, slots=True)
class Sort:
    """One kind of such a job."""

    kind: str
    framework: str
    replicas: str
    """The field that holds its replicas, as it is written."""
    container: str
    port: str
    """Name of the container's port at which its members meet."""
    types: tuple[str, ...]
    """In the order of their ranks."""
    usual: Literal["OnFailure", "Never"] = "OnFailure"
    """Whether pods are started again where their replicas do not say."""
    fields: tuple[str, ...] = ()
    """Fields of its spec beside the replicas and the run policy."""
    single: tuple[str, ...] = ()
    """Those of which there is one."""
    needs: tuple[str, ...] = ()
    leads: str = ""
    """The type whose first pod is the job's master."""
    finish: Callable[[Json, list[Json], ReplicatedSpec], None] = field(
        default=lambda job, roles, spec: None
    )

    def to_native(self, obj: AnyObject) -> Translation:
        """Return *obj* as a TrainingJob.

        Raises:
            Refused: when something in it cannot be honoured.
        """
        at = f"spec.{self.replicas}"
        spec = self._read(obj)
        replicas = self._replicas(spec.replica_specs, at)
        found = [
            jobs.role(
                obj,
                self.kind,
                type_,
                one,
                f"{at}[{type_}]",
                leads=type_ == self.leads,
                main=self.container,
            )
            for type_, one in replicas.items()
        ]
        policy = spec.run_policy
        # Workers of MPI wait; it is the launcher that fails or does not.
        judged = {k: v for k, v in replicas.items() if self.kind != "MPIJob" or k == "Launcher"}
        restarts = jobs.restarts(judged, policy)
        job = jobs.job(obj, self.framework, found, policy, restarts)
        jobs.rules(job, judged)
        self._meet(found)
        self.finish(job, found, spec)
        return Translation((job,), expires_after=policy.ttl_seconds_after_finished)

    def _read(self, obj: AnyObject) -> ReplicatedSpec:
        for name in obj.spec:
            if name not in (self.replicas, "runPolicy", *self.fields):
                raise Refused(f"spec.{name}", None, "it is not served by Lockstep; leave it out")
        tree = {k: v for k, v in obj.spec.items() if k != self.replicas}
        try:
            return read({**tree, "replicaSpecs": obj.spec.get(self.replicas) or {}}, ReplicatedSpec)
        except Refused as refused:
            problem = refused.problem
            place = problem.field.replace("spec.replicaSpecs", f"spec.{self.replicas}", 1)
            raise Refused(place, problem.given, problem.allowed) from None

    def _replicas(self, given: Replicas, at: str) -> Replicas:
        names = {type_.lower(): type_ for type_ in self.types}
        for type_ in given:
            if type_.lower() not in names:
                raise Refused(at, type_, f"served are: {', '.join(self.types)}")
        by_name = {
            names[type_.lower()]: one
            if one.restart_policy
            else structs.replace(one, restart_policy=self.usual)
            for type_, one in given.items()
        }
        for type_ in self.needs:
            if type_ not in by_name:
                raise Refused(f"{at}[{type_}]", None, "is needed")
        for type_ in self.single:
            if type_ in by_name and by_name[type_].replicas != 1:
                raise Refused(f"{at}[{type_}].replicas", by_name[type_].replicas, "must be 1")
        if not by_name:
            raise Refused(at, None, f"at least one is needed of: {', '.join(self.types)}")
        return {type_: by_name[type_] for type_ in self.types if type_ in by_name}

    def _meet(self, roles: Sequence[Json]) -> None:
        """Let members meet at the port that the first role names, where it names one."""
        main = roles[0]["template"]["spec"]["containers"][0]
        for port in main.get("ports") or []:
            if port.get("name") == self.port and port.get("containerPort"):
                jobs.set_port(roles, str(port["containerPort"]))


def _tensorflow(job: Json, roles: list[Json], spec: ReplicatedSpec) -> None:
    names = [role["name"] for role in roles]
    if spec.enable_dynamic_worker:
        raise Refused("spec.enableDynamicWorker", True, "it is not served; leave it out")
    if {"chief", "master"} <= set(names):
        raise Refused("spec.tfReplicaSpecs", "Chief, Master", "must have one of both")
    leaders = [name for name in names if name in ("chief", "master")]
    if spec.success_policy == "AllWorkers" and "worker" in names:
        job["spec"]["successPolicy"] = {"roles": ["worker"]}
    elif leaders:
        job["spec"]["successPolicy"] = {"roles": leaders}


def _xgboost(job: Json, roles: list[Json], spec: ReplicatedSpec) -> None:
    job["spec"]["successPolicy"] = {"roles": ["master"]}


def _mpi(job: Json, roles: list[Json], spec: ReplicatedSpec) -> None:
    """Make the launcher and its workers ours: their files, variables and names are the same."""
    if spec.ssh_auth_mount_path not in ("", SSH_MOUNT):
        # Beside the usual place: other users than root look for them there.
        keys = {"secret": {"secretName": f"{job['metadata']['name']}-ssh"}}
        for role in roles:
            native.mount(role["template"], "lockstep-mpi-home", spec.ssh_auth_mount_path, keys)
    for type_, one in spec.replica_specs.items():
        if one.restart_policy not in ("Never", "OnFailure", ""):
            at = f"spec.mpiReplicaSpecs[{type_}].restartPolicy"
            raise Refused(at, one.restart_policy, "must be Never or OnFailure")
    if spec.run_launcher_as_worker:
        raise Refused("spec.runLauncherAsWorker", True, "it is not served; leave it out")
    if spec.clean_pod_policy:
        job["spec"]["runPolicy"]["cleanPods"] = spec.clean_pod_policy
    for role in roles:
        role["identity"]["labels"]["training.kubeflow.org/operator-name"] = "mpi-operator"
        if role["name"] == "launcher":
            role["identity"]["name"] = "{job}-launcher"
            role["identity"]["labels"]["training.kubeflow.org/job-role"] = "launcher"
        else:
            role["identity"]["labels"]["training.kubeflow.org/job-role"] = "worker"
            if spec.slots_per_worker is not None:
                role["processesPerNode"] = spec.slots_per_worker


TF: Final = Sort(
    "TFJob",
    "tensorflow",
    "tfReplicaSpecs",
    "tensorflow",
    "tfjob-port",
    ("Chief", "Master", "Worker", "PS", "Evaluator"),
    usual="Never",
    fields=("successPolicy", "enableDynamicWorker"),
    single=("Chief", "Master"),
    finish=_tensorflow,
)
XGBOOST: Final = Sort(
    "XGBoostJob",
    "xgboost",
    "xgbReplicaSpecs",
    "xgboost",
    "xgboostjob-port",
    ("Master", "Worker"),
    usual="Never",
    single=("Master",),
    needs=("Master",),
    leads="Master",
    finish=_xgboost,
)
PADDLE: Final = Sort(
    "PaddleJob",
    "paddle",
    "paddleReplicaSpecs",
    "paddle",
    "master",
    ("Master", "Worker"),
    leads="Master",
)
JAX: Final = Sort(
    "JAXJob", "jax", "jaxReplicaSpecs", "jax", "jaxjob-port", ("Worker",), needs=("Worker",)
)
MPI: Final = Sort(
    "MPIJob",
    "mpi",
    "mpiReplicaSpecs",
    "",
    "",
    ("Launcher", "Worker"),
    fields=(
        "slotsPerWorker",
        "runLauncherAsWorker",
        "sshAuthMountPath",
        "launcherCreationPolicy",
        "mpiImplementation",
        "cleanPodPolicy",
    ),
    single=("Launcher",),
    needs=("Launcher", "Worker"),
    finish=_mpi,
)
