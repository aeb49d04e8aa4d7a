"""MPI: one launcher that runs ``mpirun``, workers that let it in by ssh.

Files, variables and names are those of mpi-operator's v2beta1. Where the workers keep the default
command, sshd listens on the pod's own address and on a port of the job's own, and its key is known
to the launcher beforehand; where they bring a command, port 22 is expected unless the variable
``LOCKSTEP_SSH_PORT`` of theirs says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lockstep.api.roles import gpus, least, processes
from lockstep.api.training import Role, TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.jobs.frameworks import mpi_files as files
from lockstep.jobs.frameworks.base import (
    CONFIG_SUFFIX,
    SSH_SUFFIX,
    UNBUFFERED,
    Framework,
    Member,
    is_elastic,
    members,
    own_setting,
    port,
    port_problems,
)

LAUNCHER: Final = "launcher"
WORKER: Final = "worker"
SSH_PORT: Final = "LOCKSTEP_SSH_PORT"

_RETRY: Final = "-o ConnectionAttempts=10"
_SSH_VOLUME: Final = "lockstep-ssh"
_FILES_VOLUME: Final = "lockstep-mpi"
_INHERITED: Final = ("image", "imagePullPolicy", "securityContext")


class Mpi(Framework):
    """Open MPI, Intel MPI and MPICH: each reads its own variables."""

    name = "mpi"
    logs_in = True

    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return a port that is none."""
        return port_problems(job, SSH_PORT)

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return the role, the ssh port, and on the launcher what the MPIs read."""
        built = {
            UNBUFFERED: "1",
            "K_MPI_JOB_ROLE": member.role.name,
            SSH_PORT: str(ssh_port(job)),
        }
        if member.role.name == LAUNCHER:
            built |= _launcher(job, member.role)
        return built

    def free(self) -> frozenset[str]:
        """Return the port and the settings of ssh and slots."""
        return frozenset(
            {
                UNBUFFERED,
                SSH_PORT,
                "OMPI_MCA_plm_rsh_args",
                "OMPI_MCA_orte_set_default_slots",
                "PRTE_MCA_plm_ssh_args",
                "PRTE_MCA_prte_set_default_slots",
                "I_MPI_PERHOST",
            }
        )

    def shape(self, job: TrainingJob, member: Member, spec: Json) -> None:
        """Mount the files and keys; give a worker its sshd and the launcher its wait."""
        _mount(job, spec)
        main = spec["containers"][0]
        if member.role.name == WORKER and not has_own_command(member.role):
            main["command"] = ["/bin/sh", f"{files.MOUNT}/{files.SSHD}"]
            address = {"fieldRef": {"fieldPath": "status.podIP"}}
            main["env"] = [
                {"name": "LOCKSTEP_POD_IP", "valueFrom": address},
                *main.get("env", []),
            ]
        if member.role.name == LAUNCHER:
            wait = {
                "name": "wait-for-workers",
                **{
                    k: main[k] for k in ("image", "imagePullPolicy", "securityContext") if k in main
                },
                "command": ["/bin/sh", f"{files.MOUNT}/{files.WAIT}"],
                "volumeMounts": main["volumeMounts"],
            }
            spec["initContainers"] = [*spec.get("initContainers", []), wait]

    def files(self, job: TrainingJob, running: frozenset[str]) -> dict[str, str]:
        """Return the host files, which name all workers, and the script that names the running."""
        workers = [m for m in members(job) if m.role.name == WORKER]
        hosts = [fqdn(job, m) for m in workers]
        up = [fqdn(job, m) for m in workers if m.name in running]
        role = worker(job)
        slots = processes(role)
        return {
            files.HOSTFILE: files.hostfile(hosts, slots),
            files.MACHINE_FILE: files.machine_file(hosts, slots),
            files.DISCOVER: files.discover_hosts(up),
            files.SSHD: files.sshd(),
            files.WAIT: files.wait_for_workers(least(role)),
        }

    def ssh_files(self, job: TrainingJob) -> dict[str, str]:
        """Return the configuration of the launcher's ssh."""
        pinned = not has_own_command(worker(job))
        return {"config": files.ssh_config(ssh_port(job), pinned=pinned)}

    def deciding(self, job: TrainingJob) -> list[Member]:
        """Return the launcher."""
        return [m for m in members(job) if m.role.name == LAUNCHER]

    def replaceable(self, job: TrainingJob) -> frozenset[str]:
        """Return the workers of an elastic job."""
        if not is_elastic(job):
            return frozenset()
        return frozenset(m.name for m in members(job) if m.role.name == WORKER)


class Horovod(Mpi):
    """Horovod, static under mpirun or elastic under horovodrun, over MPI's keys and files.

    ``horovodrun --host-discovery-script /etc/mpi/discover_hosts.sh`` follows the workers that run.
    """

    name = "horovod"

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return MPI's, and on the launcher of an elastic job how long it waits for hosts."""
        found = super().environment(job, member, everyone)
        if member.role.name == LAUNCHER and is_elastic(job):
            found["HOROVOD_ELASTIC_TIMEOUT"] = "600"
        return found

    def free(self) -> frozenset[str]:
        """Return MPI's, and the time of waiting."""
        return super().free() | {"HOROVOD_ELASTIC_TIMEOUT"}

    def files(self, job: TrainingJob, running: frozenset[str]) -> dict[str, str]:
        """Return MPI's, with the slots of each host that is discovered."""
        found, slots = super().files(job, running), processes(worker(job))
        up = [fqdn(job, m) for m in members(job) if m.role.name == WORKER and m.name in running]
        return {**found, files.DISCOVER: files.discover_hosts([f"{h}:{slots}" for h in up])}


def worker(job: TrainingJob) -> Role:
    """Return the role of the workers."""
    return next(role for role in job.spec.roles if role.name == WORKER)


def has_own_command(role: Role) -> bool:
    """Say whether the role's main container brings a command."""
    main = role.template["spec"]["containers"][0]
    return bool(main.get("command") or main.get("args"))


def ssh_port(job: TrainingJob) -> int:
    """Return the port that the workers' sshd listens on."""
    if own := own_setting(job, SSH_PORT):
        return int(own)
    return 22 if has_own_command(worker(job)) else port(job, "ssh")


def fqdn(job: TrainingJob, member: Member) -> str:
    """Return the member's full name in the cluster."""
    return f"{member.host}.{job.metadata.namespace}.svc"


def _launcher(job: TrainingJob, role: Role) -> dict[str, str]:
    slots = str(processes(worker(job)))
    machines = f"{files.MOUNT}/{files.MACHINE_FILE}"
    built = {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": f"{files.MOUNT}/{files.HOSTFILE}",
        "OMPI_MCA_plm_rsh_args": _RETRY,
        "OMPI_MCA_orte_set_default_slots": slots,
        # Open MPI 5 is started by PRRTE, which has names of its own.
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_default_hostfile": f"{files.MOUNT}/{files.HOSTFILE}",
        "PRTE_MCA_plm_ssh_args": _RETRY,
        "PRTE_MCA_prte_set_default_slots": slots,
        "I_MPI_HYDRA_HOST_FILE": machines,
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _RETRY,
        "I_MPI_PERHOST": slots,
        "HYDRA_HOST_FILE": machines,
        "HYDRA_LAUNCH_EXTRA_ARGS": _RETRY,
    }
    if not gpus(role):
        # Images ask for all GPUs by default; a launcher without any must not see the node's.
        built |= {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    return built


def _mounts() -> list[dict[str, Any]]:
    return [
        {"name": _SSH_VOLUME, "mountPath": files.SSH_MOUNT},
        {"name": _FILES_VOLUME, "mountPath": files.MOUNT},
    ]


def _mount(job: TrainingJob, spec: Json) -> None:
    name = job.metadata.name
    scripts = [
        {"key": key, "path": key, "mode": 0o555 if key in files.EXECUTABLE else 0o444}
        for key in (files.HOSTFILE, files.MACHINE_FILE, files.DISCOVER, files.SSHD, files.WAIT)
    ]
    spec["volumes"] = [
        *spec.get("volumes", []),
        {
            "name": _SSH_VOLUME,
            "secret": {"secretName": f"{name}{SSH_SUFFIX}", "defaultMode": 0o600},
        },
        {"name": _FILES_VOLUME, "configMap": {"name": f"{name}{CONFIG_SUFFIX}", "items": scripts}},
    ]
    for container in spec["containers"]:
        container["volumeMounts"] = [*container.get("volumeMounts", []), *_mounts()]
