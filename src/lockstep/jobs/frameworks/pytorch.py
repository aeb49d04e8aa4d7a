"""PyTorch: the convention of torchrun and of ``torch.distributed``'s ``env://``.

A fixed job uses torchrun's static rendezvous; a job with a range of sizes the ``c10d`` one,
hosted by its first pod. The node's rank is only ever called ``PET_NODE_RANK``: ``RANK`` means the
rank of a process, and is set only where a pod is one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from lockstep.api.roles import least, most, processes, world_size
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.jobs.frameworks.base import (
    Json,
    Member,
    is_elastic,
    members,
    own_setting,
    port,
    port_problems,
)

# Settings of taste, where the user's own is no contradiction.
_FREE: Final = frozenset(
    {
        "MASTER_PORT",
        "PET_MASTER_PORT",
        "PYTHONUNBUFFERED",
        "PET_MAX_RESTARTS",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE",
    }
)

# Seconds that torchrun waits for more than the minimum (its own is 30), and after which an agent
# that is silent is taken for dead (15): the two are most of what a lost pod costs.
_LAST_CALL: Final = 5
_KEEP_ALIVE: Final = 3


class PyTorch:
    """``torchrun train.py`` or, with one process a pod, ``python train.py``."""

    name = "pytorch"
    logs_in = False

    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return a port that is none."""
        return port_problems(job, "MASTER_PORT")

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return what torchrun and ``env://`` read."""
        master = everyone[0].host
        master_port = own_setting(job, "MASTER_PORT") or str(port(job, "master"))
        common = {
            "MASTER_ADDR": master,
            "MASTER_PORT": master_port,
            "PYTHONUNBUFFERED": "1",
            "PET_NPROC_PER_NODE": str(processes(member.role)),
        }
        if is_elastic(job):
            return common | _rendezvous(job, member, f"{master}:{master_port}")
        return common | _static(job, member, master, master_port)

    def free(self) -> frozenset[str]:
        """Return the port, buffering and torchrun's own restarts."""
        return _FREE

    def shape(self, job: TrainingJob, member: Member, spec: Json) -> None:
        """Leave the pod as the user wrote it."""

    def files(self, job: TrainingJob, running: frozenset[str]) -> dict[str, str]:
        """Return no files."""
        return {}

    def ssh_files(self, job: TrainingJob) -> dict[str, str]:
        """Return none: its pods do not log in to each other."""
        return {}

    def rank(self, job: TrainingJob, member: Member) -> int:
        """Return its place among all members; the c10d rendezvous sorts them by host name."""
        if not is_elastic(job):
            return member.rank
        largest = [structs.replace(role, replicas=most(role)) for role in job.spec.roles]
        spec = structs.replace(job.spec, roles=largest)
        hosts = sorted(m.host for m in members(structs.replace(job, spec=spec)))
        return hosts.index(member.host)

    def deciding(self, job: TrainingJob) -> list[Member]:
        """Return all members of a fixed job, and the host of the rendezvous of an elastic one."""
        everyone = members(job)
        return everyone[:1] if is_elastic(job) else everyone

    def anchors(self, job: TrainingJob) -> list[Member]:
        """Return the host of the rendezvous."""
        return members(job)[:1]


def _static(job: TrainingJob, member: Member, master: str, master_port: str) -> dict[str, str]:
    built = {
        "WORLD_SIZE": str(world_size(job.spec.roles)),
        "PET_NNODES": str(sum(role.replicas for role in job.spec.roles)),
        "PET_NODE_RANK": str(member.rank),
        "PET_MASTER_ADDR": master,
        "PET_MASTER_PORT": master_port,
    }
    if all(processes(role) == 1 for role in job.spec.roles):
        built |= {"RANK": str(member.rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    return built


def _rendezvous(job: TrainingJob, member: Member, endpoint: str) -> dict[str, str]:
    fewest = sum(least(role) for role in job.spec.roles)
    highest = sum(most(role) for role in job.spec.roles)
    return {
        "PET_NNODES": f"{fewest}:{highest}",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": endpoint,
        "PET_RDZV_ID": job.metadata.uid or job.metadata.name,
        "PET_RDZV_CONF": _rendezvous_settings(member),
        "PET_MAX_RESTARTS": str(job.spec.recovery.max_restarts),
        # Survivors of a failure would keep the store of the first round to themselves, and the pod
        # that replaces the lost one would wait for its address until it times out.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }


def _rendezvous_settings(member: Member) -> str:
    """Return who hosts the store, and how soon a change of members is settled.

    The host is said outright: torchrun would compare host names, and guess wrong with short ones.
    """
    host = "true" if member.rank == 0 else "false"
    return f"is_host={host},last_call_timeout={_LAST_CALL},keep_alive_interval={_KEEP_ALIVE}"
