"""Plain: pods that know their own place and the others' names, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.jobs.frameworks.base import UNBUFFERED, Framework, Member, is_elastic, members


class Plain(Framework):
    """For programs that find together by themselves."""

    name = "plain"

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

    def replaceable(self, job: TrainingJob) -> frozenset[str]:
        """Return all pods of an elastic job: plain pods do not depend on each other."""
        return frozenset(m.name for m in members(job)) if is_elastic(job) else frozenset()
