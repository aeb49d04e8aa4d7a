"""PyTorch: the convention of torchrun and of ``torch.distributed``'s ``env://``.

What is set here are torchrun's static variables. Where a launcher holds the ranks it lays those of
the present world over them. The node's rank is only ever called ``PET_NODE_RANK``: ``RANK`` means
the rank of a process, and is set only where a pod is one process of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.roles import launched, processes, world_size
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.jobs.frameworks.base import (
    Framework,
    Member,
    is_elastic,
    own_setting,
    pool,
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
    }
)


class PyTorch(Framework):
    """``torchrun train.py`` or, with one process a pod, ``python train.py``."""

    name = "pytorch"

    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return a port that is none, and sizes that change without a launcher."""
        found = port_problems(job, "MASTER_PORT")
        if is_elastic(job) and not launched(job):
            allowed = "must be Auto where min and max differ: ranks find together by launchers"
            found.append(Problem("spec.launcher", job.spec.launcher, allowed))
        if spares := job.spec.recovery.spares:
            if not launched(job):
                why = "must be 0 without launchers, which alone can take a place over"
                found.append(Problem("spec.recovery.spares", spares, why))
            elif len(job.spec.roles) > 1:
                why = "must be 0 for a job of several roles: a spare stands in for one role's pods"
                found.append(Problem("spec.recovery.spares", spares, why))
        return found

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return what torchrun and ``env://`` read."""
        master = everyone[0].host
        master_port = own_setting(job, "MASTER_PORT") or str(port(job, "master"))
        torchruns = {
            "PYTHONUNBUFFERED": "1",
            "PET_NPROC_PER_NODE": str(processes(member.role)),
            "PET_NNODES": str(sum(role.replicas for role in job.spec.roles)),
            "PET_NODE_RANK": str(member.rank),
            "PET_MASTER_ADDR": master,
            "PET_MASTER_PORT": master_port,
        }
        if _is_alone(job):
            return torchruns | {"LOCKSTEP_ALONE": "1"}
        size = str(world_size(job.spec.roles))
        found = torchruns | {"MASTER_ADDR": master, "MASTER_PORT": master_port, "WORLD_SIZE": size}
        if all(processes(role) == 1 for role in job.spec.roles):
            found |= {"RANK": str(member.rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        return found

    def free(self) -> frozenset[str]:
        """Return the port, buffering and torchrun's own restarts."""
        return _FREE

    def replaceable(self, job: TrainingJob) -> frozenset[str]:
        """Return all pods where launchers hold the ranks, which find together again."""
        return frozenset(m.name for m in pool(job)) if launched(job) else frozenset()


def _is_alone(job: TrainingJob) -> bool:
    """Say whether the job is one process that no setting makes a rank.

    Many programs take the variables of a rank for a sign that they are distributed.
    """
    first = job.spec.roles[0]
    asked = first.processes_per_node or first.identity.env or job.spec.recovery.spares
    sole = job.spec.framework == PyTorch.name and world_size(job.spec.roles) == 1
    return sole and not is_elastic(job) and not asked
