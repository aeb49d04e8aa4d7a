"""All that is wrong with a job: across its fields, and against its framework's convention."""

from __future__ import annotations

from lockstep.api import validation
from lockstep.api.roles import launched
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import contradictions, members


def problems(job: TrainingJob) -> list[Problem]:
    """Return what keeps *job* from running; nothing when it can."""
    found = validation.problems(job)
    if found:
        return found
    framework = FRAMEWORKS[job.spec.framework]
    # What a framework sets is known only of a job that it could run.
    wrong = [*framework.problems(job), *_spares(job)]
    return wrong or list(contradictions(job, framework, members(job)))


def _spares(job: TrainingJob) -> list[Problem]:
    spares = job.spec.recovery.spares
    if not spares or job.spec.framework == "pytorch" or launched(job):
        return []
    why = f"must be 0 for the framework {job.spec.framework}: its ranks cannot be taken over"
    return [Problem("spec.recovery.spares", spares, why)]
