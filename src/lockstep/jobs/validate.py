"""All that is wrong with a job: across its fields, and against its framework's convention."""

from __future__ import annotations

from lockstep.api import validation
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
    return [*framework.problems(job), *contradictions(job, framework, members(job))]
