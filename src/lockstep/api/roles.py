"""What follows from a role: its size, its processes, the names of its pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.api.names import GPU, GPU_CARDS
from lockstep.api.quantity import to_int
from lockstep.api.training import Role

Json = dict[str, Any]


def least(role: Role) -> int:
    """Return the fewest pods that the role can run with."""
    return role.replicas if role.min is None else role.min


def most(role: Role) -> int:
    """Return the most pods that the role can use."""
    return role.replicas if role.max is None else role.max


def elastic(role: Role) -> bool:
    """Say whether the role's size may change while it runs."""
    return least(role) < most(role)


def pod_name(job: str, role: str, index: int) -> str:
    """Return the name of a pod, which is its host name too."""
    return f"{job}-{role}-{index}"


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
    """Return the roles whose processes are ranks: under MPI the workers, else all."""
    return [role for role in roles if framework != "mpi" or role.name == "worker"]
