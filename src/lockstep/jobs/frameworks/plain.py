"""Plain: pods that know their own place and the others' names, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.jobs.frameworks.base import UNBUFFERED, Json, Member, is_elastic, members


class Plain:
    """For programs that find together by themselves."""

    name = "plain"
    logs_in = False

    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return nothing: any pods will do."""
        return []

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return the member's role and index and the names of all members."""
        return {
            UNBUFFERED: "1",
            "LOCKSTEP_JOB": job.metadata.name,
            "LOCKSTEP_ROLE": member.role.name,
            "LOCKSTEP_INDEX": str(member.index),
            "LOCKSTEP_PEERS": ",".join(m.host for m in everyone),
        }

    def free(self) -> frozenset[str]:
        """Return buffering; its other variables are reserved."""
        return frozenset({UNBUFFERED})

    def shape(self, job: TrainingJob, member: Member, spec: Json) -> None:
        """Leave the pod as the user wrote it."""

    def files(self, job: TrainingJob, running: frozenset[str]) -> dict[str, str]:
        """Return no files."""
        return {}

    def ssh_files(self, job: TrainingJob) -> dict[str, str]:
        """Return none: its pods do not log in to each other."""
        return {}

    def rank(self, job: TrainingJob, member: Member) -> int:
        """Return its place among all members."""
        return member.rank

    def deciding(self, job: TrainingJob) -> list[Member]:
        """Return all members."""
        return members(job)

    def replaceable(self, job: TrainingJob) -> frozenset[str]:
        """Return all pods of an elastic job: plain pods do not depend on each other."""
        return frozenset(m.name for m in members(job)) if is_elastic(job) else frozenset()
