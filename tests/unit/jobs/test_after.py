"""A job that comes after others has no pods until all of them have succeeded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from tests.support.jobs import NOW, job

from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.api.validation import problems
from lockstep.api.wire import convert
from lockstep.jobs import conditions as cond
from lockstep.jobs.decide import decide
from lockstep.jobs.world import Seen


def other(phase: str | None) -> TrainingJob | None:
    given = job(name="prep")
    if phase is None:
        return None
    return structs.replace(given, status=convert({"phase": phase}, TrainingJobStatus))


def seen(*phases: str | None) -> Seen:
    awaited = {f"prep{i}": other(phase) for i, phase in enumerate(phases)}
    return Seen(job(after=list(awaited)), awaited=awaited)


@pytest.mark.parametrize(
    ("phases", "phase", "message"),
    [
        (["Running"], "Pending", "waits for job prep0 to succeed: it is Running"),
        ([None], "Pending", "waits for job prep0, which is not there"),
        (
            ["Succeeded", "Suspended", None],
            "Pending",
            "waits for job prep1 to succeed: it is Suspended and for job prep2, which is not there",
        ),
        (["Running", "Failed"], "Failed", "job prep1, which it was to come after, has failed"),
    ],
)
def test_it_waits_or_fails_with_a_reason(phases: list[str], phase: str, message: str) -> None:
    decision = decide(seen(*phases), NOW)
    assert (decision.status.phase, decision.status.message) == (phase, message)
    assert not decision.actions
    assert decision.status.queued_at is None


def test_it_begins_once_all_have_succeeded() -> None:
    decision = decide(seen("Succeeded", "Succeeded"), NOW)
    assert decision.actions
    assert decision.status.queued_at is not None


def test_what_has_begun_does_not_depend_on_them_any_more() -> None:
    begun = seen("Succeeded")
    status = decide(begun, NOW).status
    status = cond.put(status, cond.CREATED, True, cond.Why("PodsCreated"), NOW)
    kept = structs.replace(begun.job, status=status)
    assert decide(replace(begun, job=kept, awaited={"prep0": None}), NOW).actions


@pytest.mark.parametrize(("name", "said"), [("digits", "another job"), ("A b", "name of a job")])
def test_it_comes_after_another_job(name: str, said: str) -> None:
    (problem,) = problems(job(after=[name]))
    assert problem.field == "spec.after[0]"
    assert said in problem.allowed
