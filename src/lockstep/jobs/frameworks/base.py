"""What every framework has in common: members, the environment, what is wrong with it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.api.roles import (
    elastic,
    filled,
    indices,
    launched,
    most,
    numbers,
    pod_name,
    service_name,
)
from lockstep.api.training import Identity, Role, TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json

CONFIG_SUFFIX: Final = "-config"
SSH_SUFFIX: Final = "-ssh"

UNBUFFERED: Final = "PYTHONUNBUFFERED"
"""Set for all, so that logs show at once what was printed; the user's own setting wins."""

# Below the ephemeral ports (32768 and up) and node ports (30000 and up), above the usual services.
_FIRST_PORT: Final = 20000
_PORTS: Final = 9000


@dataclass(frozen=True, slots=True)
class Member:
    """One pod of a job: the *index*-th of its role, the *rank*-th of all."""

    role: Role
    index: int
    rank: int
    name: str
    """The name of the pod, which is its host name."""
    host: str
    """The name under which the other pods of the namespace reach it."""


class Framework(ABC):
    """One launch convention: what its pods get and when a job that uses it is done.

    Unless it says otherwise, its pods stay as the user wrote them, all of them must succeed, and
    none of them can be replaced alone.
    """

    name: str
    logs_in: bool = False
    """Whether its pods log in to each other, with keys from the job's Secret."""

    @abstractmethod
    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return what keeps this framework from running the job."""

    @abstractmethod
    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return the variables that every container of *member*, one of *everyone*, gets."""

    @abstractmethod
    def free(self) -> frozenset[str]:
        """Return the variables of which the user's own setting wins; the others are reserved."""

    def shape(self, job: TrainingJob, member: Member, spec: Json) -> None:  # noqa: B027
        """Change the member's new pod *spec* in place: files, default commands."""

    def files(self, job: TrainingJob, running: frozenset[str]) -> dict[str, str]:
        """Return the files of the job's ConfigMap (none: no ConfigMap), given who runs."""
        return {}

    def ssh_files(self, job: TrainingJob) -> dict[str, str]:
        """Return what lies next to the ssh keys in the job's Secret, where it has one."""
        return {}

    def rank(self, job: TrainingJob, member: Member) -> int:
        """Return the place of *member* in the order in which the framework numbers processes."""
        return member.rank

    def deciding(self, job: TrainingJob) -> list[Member]:
        """Return the members that must all succeed for the job to succeed."""
        return members(job)

    def replaceable(self, job: TrainingJob) -> frozenset[str]:
        """Return the pods that can be replaced while the others go on."""
        return frozenset()


def members(job: TrainingJob) -> list[Member]:
    """Return the members that *job* wants now, in the order of their ranks."""
    own, service = job.metadata.name, service_name(job)
    found: list[Member] = []
    for role in job.spec.roles:
        usual = role.identity.name == Identity().name
        for index in indices(role):
            # The usual name without a search for braces: large jobs are looked at often.
            name = f"{own}-{role.name}-{index}" if usual else pod_name(own, role, index)
            found.append(Member(role, index, len(found), name, f"{name}.{service}"))
    return found


def pool(job: TrainingJob) -> list[Member]:
    """Return the members of *job* and its spares behind them, each with the rank of its name."""
    found = members(job)
    if not job.spec.recovery.spares or not launched(job):
        return found
    role, service = job.spec.roles[0], service_name(job)
    for index in indices(role, role.replicas + job.spec.recovery.spares)[role.replicas :]:
        name = pod_name(job.metadata.name, role, index)
        found.append(Member(role, index, len(found), name, f"{name}.{service}"))
    return found


def logs_in(job: TrainingJob, framework: Framework) -> bool:
    """Say whether the pods log in to each other, so that the job has a Secret with keys."""
    return framework.logs_in or job.spec.ssh or bool(framework.ssh_files(job))


def is_elastic(job: TrainingJob) -> bool:
    """Say whether *job* may change its size while it runs."""
    return any(elastic(role) for role in job.spec.roles)


def size(job: TrainingJob) -> str:
    """Return the sizes that the environment of a member was made for.

    A fixed job whose sizes change has to start anew; an elastic one only when its range changes.
    """
    return ",".join(
        f"{r.name}={r.min or r.replicas}:{most(r)}" if elastic(r) else f"{r.name}={r.replicas}"
        for r in job.spec.roles
    )


def port(job: TrainingJob, purpose: str) -> int:
    """Return the job's own port for *purpose*: the same whenever it is asked for.

    Pods of a process node share the network of their machine, so that a port common to all jobs
    would make them collide.
    """
    seed = f"{job.metadata.uid or job.metadata.name}/{purpose}".encode()
    return _FIRST_PORT + int.from_bytes(hashlib.sha256(seed).digest()[:4]) % _PORTS


def own_setting(job: TrainingJob, name: str) -> str | None:
    """Return the value that the user set for the variable *name* in a main container."""
    for role in job.spec.roles:
        spec = role.template.get("spec", {})
        for container in spec.get("containers", [])[:1]:
            for variable in container.get("env") or []:
                if variable.get("name") == name and "value" in variable:
                    return str(variable["value"])
    return None


def port_problems(job: TrainingJob, variable: str) -> list[Problem]:
    """Return a problem when the user's *variable* is not the number of a port."""
    own = own_setting(job, variable)
    if own is None or (own.isdecimal() and 0 < int(own) < 65536):
        return []
    return [Problem("spec.roles", f"{variable}={own}", "must be a port between 1 and 65535")]


def own(job: TrainingJob, member: Member, patterns: Mapping[str, str]) -> dict[str, str]:
    """Return *patterns* of the member's role with its own name, index and rank in them."""
    places = {
        "job": job.metadata.name,
        "role": member.role.name,
        **numbers(member.role, member.index),
        "rank": str(member.rank),
    }
    return {key: filled(value, **places) for key, value in patterns.items()}


def environment(
    job: TrainingJob, framework: Framework, member: Member, everyone: Sequence[Member]
) -> dict[str, str]:
    """Return the variables of *member*: those of its identity go before the framework's."""
    given = framework.environment(job, member, everyone)
    return given | own(job, member, member.role.identity.env)


def merge_environment(container: Json, given: Mapping[str, str], *, free: frozenset[str]) -> None:
    """Add the variables *given* to *container*, in front of the user's, which may refer to them."""
    own = container.get("env") or []
    kept = {v["name"] for v in own if v["name"] in free}
    ours = [{"name": n, "value": v} for n, v in given.items() if n not in kept]
    reserved = {v["name"] for v in ours}
    container["env"] = ours + [v for v in own if v["name"] not in reserved]


def contradictions(
    job: TrainingJob, framework: Framework, everyone: Sequence[Member]
) -> Iterator[Problem]:
    """Yield the user's settings of reserved variables that say something else than ours."""
    for member in (m for m in everyone if m.index == 0):
        ours = environment(job, framework, member, everyone)
        role_at = job.spec.roles.index(member.role)
        for c, container in enumerate(member.role.template["spec"]["containers"]):
            at = f"spec.roles[{role_at}].template.spec.containers[{c}].env"
            for v, variable in enumerate(container.get("env") or []):
                name = variable.get("name")
                if name not in ours or name in framework.free():
                    continue
                if variable.get("value") != ours[name]:
                    yield Problem(
                        f"{at}[{v}]",
                        f"{name}={variable.get('value', '(from elsewhere)')}",
                        f"{name} is set by the framework {framework.name}; leave it out",
                    )
