"""What follows from a role: its size, its processes, the names of its pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.names import GPU, GPU_CARDS
from lockstep.api.quantity import to_int
from lockstep.api.spot import SPOT_SUFFIX
from lockstep.api.training import Role, TrainingJob
from lockstep.api.wire import Json

TORCH: Final = ("pytorch", "megatron", "deepspeed")
"""Frameworks whose ranks torchrun, or a launcher of ours in its place, starts in each pod."""


LED: Final = ("mpi", "horovod", "deepspeed")
"""Frameworks whose ranks a pod of the role ``launcher`` may start in the others."""


def launcher_host(job: TrainingJob) -> str:
    """Return the name of the pod that starts the ranks; empty where there is none.

    MPICH's and Intel MPI's ranks call it by this name alone.
    """
    if job.spec.framework not in LED:
        return ""
    lead = next((role for role in job.spec.roles if role.name == "launcher"), None)
    return "" if lead is None else pod_name(job.metadata.name, lead, 0)


def service_name(job: TrainingJob) -> str:
    """Return the headless service that names the pods: their templates' subdomain, or the job's."""
    stated = (one.template["spec"].get("subdomain") for one in job.spec.roles)
    return next(filter(None, stated), job.metadata.name)


def least(role: Role) -> int:
    """Return the fewest pods that the role can run with."""
    return role.replicas if role.min is None else role.min


def most(role: Role) -> int:
    """Return the most pods that the role can use."""
    return role.replicas if role.max is None else role.max


def on_spot(job: TrainingJob, role: Role, index: int) -> bool:
    """Say whether the pod of *index* is one of those beyond the least that stand on spot nodes."""
    return job.spec.spot == "AboveMin" and place(role, index) >= least(role)


def group_of(job: TrainingJob, role: Role, index: int) -> str:
    """Return the gang's group that the pod of *index* belongs to."""
    return role.name + SPOT_SUFFIX if on_spot(job, role, index) else role.name


def elastic(role: Role) -> bool:
    """Say whether the role's size may change while it runs."""
    return least(role) < most(role)


def pod_name(job: str, role: Role, index: int) -> str:
    """Return the name of a pod, which is its host name too."""
    return filled(role.identity.name, job=job, role=role.name, **numbers(role, index))


def numbers(role: Role, index: int) -> dict[str, str]:
    """Return the pod's index, and its block and place in it, by the names of patterns."""
    found = {"index": str(index)}
    if size := role.identity.block:
        found |= {"block": str(index // size), "member": str(index % size)}
    return found


def indices(role: Role, count: int | None = None) -> list[int]:
    """Return the indices of the role's pods, or of the first *count*, without those left out."""
    wanted, omitted = role.replicas if count is None else count, frozenset(role.omit)
    return [i for i in range(wanted + len(omitted)) if i not in omitted][:wanted]


def place(role: Role, index: int) -> int:
    """Return how many pods of the role come before that of *index*."""
    return index - sum(one < index for one in frozenset(role.omit))


def filled(pattern: str, **places: str) -> str:
    """Return *pattern* with the names in braces replaced by what they stand for."""
    for name, value in places.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return pattern


def containers(role: Role) -> list[Json]:
    """Return the containers of the role's template, as far as it has well-formed ones."""
    spec = role.template.get("spec")
    found = spec.get("containers") if isinstance(spec, dict) else None
    return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []


def gpus(role: Role) -> int:
    """Return how many GPUs the role's first container gets, whole or in part."""
    main = containers(role)[:1]
    resources = main[0].get("resources") if main else None
    if not isinstance(resources, dict):
        return 0
    for key in ("limits", "requests"):
        amounts = resources.get(key)
        if not isinstance(amounts, dict):
            continue
        for name in (GPU, GPU_CARDS):
            if name in amounts:
                return to_int(amounts[name])
    return 0


def processes(role: Role) -> int:
    """Return how many processes a pod of the role starts: as said, or one for each GPU."""
    return role.processes_per_node or gpus(role) or 1


def world_size(roles: Sequence[Role]) -> int:
    """Return the number of processes of all pods of *roles*."""
    return sum(role.replicas * processes(role) for role in roles)


def ranked(framework: str, roles: Sequence[Role]) -> list[Role]:
    """Return the roles whose processes are ranks: beside a launcher the workers, else all."""
    led = framework in LED and any(r.name == "launcher" for r in roles)
    return [role for role in roles if not led or role.name == "worker"]


def launched(job: TrainingJob) -> bool:
    """Say whether launchers hold the ranks of *job*: where each role says what command to run."""
    return _wants_launchers(job) and not without_command(job)


def without_command(job: TrainingJob) -> list[str]:
    """Return the roles for want of whose command *job* has no launchers."""
    if not _wants_launchers(job):
        return []
    return [
        role.name for role in job.spec.roles if not (containers(role) or [{}])[0].get("command")
    ]


def _wants_launchers(job: TrainingJob) -> bool:
    if job.spec.framework not in TORCH or job.spec.launcher == "None":
        return False
    led = any(role.name == "launcher" for role in job.spec.roles)
    return not (led and job.spec.framework == "deepspeed")
