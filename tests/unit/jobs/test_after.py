"""A job that comes after others has no pods until all of them have succeeded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from tests.support.jobs import NOW, job

from lockstep.api.names import ARRAY_LABEL
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.api.validation import problems
from lockstep.api.wire import convert
from lockstep.jobs import conditions as cond
from lockstep.jobs.decide import decide
from lockstep.jobs.job_state import Seen


def other(name: str, phase: str | None) -> list[TrainingJob]:
    if phase is None:
        return []
    return [structs.replace(job(name=name), status=convert({"phase": phase}, TrainingJobStatus))]


def seen(*phases: str | None) -> Seen:
    awaited = {f"prep{i}": other(f"prep{i}", phase) for i, phase in enumerate(phases)}
    return Seen(job(after=list(awaited)), awaited=awaited)


def seen_array(*phases: str) -> Seen:
    jobs = [one for i, phase in enumerate(phases) for one in other(f"sweep-{i}", phase)]
    return Seen(job(after=["sweep"]), awaited={"sweep": jobs})


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


@pytest.mark.parametrize(
    ("phases", "phase", "message"),
    [
        (["Succeeded", "Running", "Pending"], "Pending",
         "waits for 2 of 3 jobs of array sweep to succeed: sweep-1 is Running"),
        (["Succeeded", "Pending"], "Pending",
         "waits for 1 of 2 jobs of array sweep to succeed: sweep-1 is Pending"),
        (["Running"], "Pending",
         "waits for 1 of 1 jobs of array sweep to succeed: sweep-0 is Running"),
        (["Running", "Failed"], "Failed", "job sweep-1, which it was to come after, has failed"),
    ],
)  # fmt: skip
def test_it_waits_for_all_jobs_of_an_array(phases: list[str], phase: str, message: str) -> None:
    decision = decide(seen_array(*phases), NOW)
    assert (decision.status.phase, decision.status.message) == (phase, message)
    assert not decision.actions


def test_it_begins_once_the_array_has_succeeded() -> None:
    assert decide(seen_array("Succeeded", "Succeeded"), NOW).actions


def test_it_begins_once_all_have_succeeded() -> None:
    decision = decide(seen("Succeeded", "Succeeded"), NOW)
    assert decision.actions
    assert decision.status.queued_at is not None


def test_what_has_begun_does_not_depend_on_them_any_more() -> None:
    begun = seen("Succeeded")
    status = decide(begun, NOW).status
    status = cond.put(status, cond.CREATED, True, cond.Why("PodsCreated"), NOW)
    kept = structs.replace(begun.job, status=status)
    assert decide(replace(begun, job=kept, awaited={"prep0": []}), NOW).actions


@pytest.mark.parametrize(
    ("name", "said"),
    [("digits", "another job"), ("sweep", "another array"), ("A b", "name of a job")],
)
def test_it_comes_after_another_job(name: str, said: str) -> None:
    given = job(after=[name])
    given.metadata.labels[ARRAY_LABEL] = "sweep"
    (problem,) = problems(given)
    assert problem.field == "spec.after[0]"
    assert said in problem.allowed
