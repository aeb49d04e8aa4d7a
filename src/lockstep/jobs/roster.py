"""The pods of a job, told apart: who belongs to this attempt, who failed, who is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lockstep.api.containers import ContainerStatus, StateTerminated
from lockstep.api.core import Pod
from lockstep.api.meta import ObjectMeta, controller_of
from lockstep.api.names import ATTEMPT_LABEL
from lockstep.api.training import ReplicaStatus, TrainingJob, TrainingJobStatus
from lockstep.jobs import seating
from lockstep.jobs.frameworks.base import Member, pool

_FINISHED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Roster:
    """The pods of a job as seen from its present status."""

    wanted: dict[str, Member]
    current: dict[str, Pod]
    """Pods of the present attempt that are wanted, by name."""
    surplus: list[Pod]
    """Pods of the present attempt that the job's size no longer has room for."""
    stale: list[Pod]
    """Pods of earlier attempts."""
    foreign: list[Pod]
    """Pods that bear a wanted name and belong to something else."""
    standby: dict[str, Member]
    """Members without a rank: spares, and pods that a smaller world waits for."""
    standing: dict[str, Pod]
    """Their pods, by name."""

    def of_role(self, role: str) -> list[Pod]:
        """Return the current pods of *role*."""
        return [p for n, p in self.current.items() if self.wanted[n].role.name == role]

    def in_role(self) -> Iterator[tuple[int, str]]:
        """Yield the wanted members, each with how many of its role come before it."""
        seen: Counter[str] = Counter()
        for name, member in self.wanted.items():
            yield seen[member.role.name], name
            seen[member.role.name] += 1

    def of_roles(self, names: Container[str]) -> Roster:
        """Return what it says of the roles *names* alone."""
        wanted = {n: m for n, m in self.wanted.items() if m.role.name in names}
        current = {n: p for n, p in self.current.items() if n in wanted}
        return replace(self, wanted=wanted, current=current)

    def missing(self) -> list[Member]:
        """Return the wanted members that have no pod."""
        return [m for n, m in self.wanted.items() if n not in self.current]


def read(job: TrainingJob, pods: Sequence[Pod], status: TrainingJobStatus) -> Roster:
    """Return *pods* told apart by *status*' attempt."""
    wanted = seating.seated(job, status)
    standby = {m.name: m for m in pool(job) if m.name not in wanted}
    roster = Roster(wanted, {}, [], [], [], standby, {})
    for pod in sorted(pods, key=lambda p: p.metadata.name):
        name = pod.metadata.name
        if not owns(job, pod.metadata):
            if name in wanted or name in standby:
                roster.foreign.append(pod)
        elif pod.metadata.labels.get(ATTEMPT_LABEL) != str(status.attempt):
            roster.stale.append(pod)
        elif name in wanted:
            roster.current[name] = pod
        elif name in standby:
            roster.standing[name] = pod
        else:
            roster.surplus.append(pod)
    return roster


def owns(job: TrainingJob, meta: ObjectMeta) -> bool:
    """Say whether the object with that metadata belongs to *job*, and not to a namesake."""
    owner = controller_of(meta)
    return owner is not None and owner.uid == job.metadata.uid


def finished(pod: Pod) -> bool:
    """Say whether the pod has ended."""
    return pod.status.phase in _FINISHED


def leaving(pod: Pod) -> bool:
    """Say whether a pod that still runs is being deleted."""
    return pod.metadata.deletion_timestamp is not None and not finished(pod)


def is_ready(pod: Pod) -> bool:
    """Say whether the pod is ready."""
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def exits(pod: Pod) -> list[tuple[ContainerStatus, StateTerminated]]:
    """Return the containers of *pod* that ended with an error, the first to end first."""
    statuses = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    ended = [(s, s.state.terminated) for s in statuses if s.state.terminated is not None]
    bad = [(s, t) for s, t in ended if t is not None and t.exit_code != 0]
    return sorted(bad, key=lambda pair: pair[1].finished_at or "")


def counts(
    roster: Roster, before: dict[str, ReplicaStatus], replacing: dict[str, str]
) -> dict[str, ReplicaStatus]:
    """Return the replica statuses; ``created`` grows with the pods that were seen in a row."""
    found: dict[str, ReplicaStatus] = {}
    for member in roster.wanted.values():
        role = member.role
        if role.name in found:
            continue
        pods = roster.of_role(role.name)
        known = min(before.get(role.name, ReplicaStatus()).created, role.replicas)
        names = [m.name for m in roster.wanted.values() if m.role.name == role.name]
        while known < len(names) and (names[known] in roster.current or names[known] in replacing):
            known += 1
        found[role.name] = ReplicaStatus(
            created=known,
            active=sum(not finished(p) for p in pods),
            ready=sum(is_ready(p) and not finished(p) for p in pods),
            succeeded=sum(p.status.phase == "Succeeded" for p in pods),
            failed=sum(p.status.phase == "Failed" for p in pods),
        )
    return found
