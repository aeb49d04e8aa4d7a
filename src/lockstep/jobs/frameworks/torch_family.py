"""Megatron and DeepSpeed under torchrun: PyTorch's convention and a few variables more."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.api.roles import processes
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.jobs.frameworks.base import Framework, Member
from lockstep.jobs.frameworks.mpi import LAUNCHER, Mpi
from lockstep.jobs.frameworks.pytorch import PyTorch

DEEPSPEED_HOSTFILE = "/job/hostfile"


class Megatron(PyTorch):
    """torchrun, one connection of each GPU, and the names that Megatron's scripts read."""

    name = "megatron"

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return PyTorch's variables, those of Megatron's scripts, and how ranks are split."""
        split = job.spec.parallelism
        return super().environment(job, member, everyone) | {
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
            "GPUS_PER_NODE": str(processes(member.role)),
            "NUM_NODES": str(len(everyone)),
            "NODE_RANK": str(member.rank),
            "TP_SIZE": str(split.tensor),
            "PP_SIZE": str(split.pipeline),
            "CP_SIZE": str(split.context),
            "EP_SIZE": str(split.expert),
        }

    def free(self) -> frozenset[str]:
        """Return PyTorch's, and the number of connections."""
        return super().free() | {"CUDA_DEVICE_MAX_CONNECTIONS"}


class DeepSpeed(Framework):
    """With a role ``launcher`` a host file and keys, as ``deepspeed`` needs; else torchrun's."""

    name = "deepspeed"
    # Whether pods log in depends on the job: those with a launcher say so in ``ssh_files``.

    def __init__(self) -> None:
        self._torch = PyTorch()
        self._hosts = _WithHostFile()

    def of(self, job: TrainingJob) -> PyTorch | Mpi:
        """Return the convention that *job* uses."""
        return self._hosts if launches(job) else self._torch

    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return what its convention finds, and roles beside a launcher that are no workers."""
        names = sorted(role.name for role in job.spec.roles)
        if launches(job) and names != ["launcher", "worker"]:
            return [Problem("spec.roles", names, "a launcher needs a role worker, and no other")]
        return self.of(job).problems(job)

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return what ``deepspeed`` and torchrun read."""
        return self.of(job).environment(job, member, everyone)

    def free(self) -> frozenset[str]:
        """Return what is free in either way."""
        return self._torch.free() | self._hosts.free()

    def shape(self, job: TrainingJob, member: Member, spec: Json) -> None:
        """Mount host file and keys where there is a launcher."""
        self.of(job).shape(job, member, spec)

    def files(self, job: TrainingJob, running: frozenset[str]) -> dict[str, str]:
        """Return the host file, where there is a launcher."""
        return self.of(job).files(job, running)

    def ssh_files(self, job: TrainingJob) -> dict[str, str]:
        """Return the ssh configuration, where there is a launcher."""
        return {} if self.problems(job) else self.of(job).ssh_files(job)

    def deciding(self, job: TrainingJob) -> list[Member]:
        """Return the launcher, else all members."""
        return self.of(job).deciding(job)

    def replaceable(self, job: TrainingJob) -> frozenset[str]:
        """Return what its convention says."""
        return self.of(job).replaceable(job)


class _WithHostFile(Mpi):
    """MPI's files, with the host file where ``deepspeed`` looks for it."""

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return MPI's variables, and what ``deepspeed`` itself reads on the launcher."""
        found = super().environment(job, member, everyone)
        if member.role.name == LAUNCHER:
            found |= {"DLTS_HOSTFILE": DEEPSPEED_HOSTFILE, "PDSH_RCMD_TYPE": "ssh"}
        return found

    def shape(self, job: TrainingJob, member: Member, spec: Json) -> None:
        """Do as MPI does, and show the host file at /job."""
        super().shape(job, member, spec)
        if member.role.name != LAUNCHER:
            return
        items = [{"key": "hostfile", "path": "hostfile"}]
        source = {"configMap": {"name": f"{job.metadata.name}-config", "items": items}}
        spec["volumes"] = [*spec["volumes"], {"name": "lockstep-deepspeed", **source}]
        main = spec["containers"][0]
        mount = {"name": "lockstep-deepspeed", "mountPath": "/job"}
        main["volumeMounts"] = [*main["volumeMounts"], mount]


def launches(job: TrainingJob) -> bool:
    """Say whether a launcher starts the ranks, and not torchrun in each pod."""
    return any(role.name == LAUNCHER for role in job.spec.roles)
