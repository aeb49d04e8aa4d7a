"""ScaleIn and ScaleOut: who comes, who goes, and one write after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from lockstep.api.core import AnyObject
from lockstep.api.merge import difference
from lockstep.api.roles import indices
from lockstep.api.training import ReplicaStatus, TrainingJob, TrainingJobStatus
from lockstep.api.wire import convert
from lockstep.compat.etoperator import job as jobs
from lockstep.compat.etoperator.scaling import Step, key, step
from lockstep.jobs.validate import problems

Json = dict[str, Any]
SAMPLE = Path(__file__).parent / "samples" / "et-trainingjob.yaml"


def elastic(*workers: int, **status: Any) -> AnyObject:
    body = yaml.safe_load(SAMPLE.read_text())
    if workers:
        status["targetWorkers"] = [f"elastic-worker-{i}" for i in workers]
    return convert({**body, "status": status}, AnyObject)


def scaler(kind: str, **spec: Any) -> AnyObject:
    spec.setdefault("selector", {"name": "elastic"})
    meta = {"name": "s", "namespace": "default"}
    return convert({"kind": kind, "metadata": meta, "spec": spec}, AnyObject)


def native(job: AnyObject, ready: int) -> TrainingJob:
    (body,) = jobs.to_native(job).objects
    made = convert(body, TrainingJob)
    told = {"worker": ReplicaStatus(active=ready, ready=ready)}
    return structs.replace(made, status=TrainingJobStatus(replica_statuses=told))


def merged(status: Json, patch: Json) -> Json:
    return {k: v for k, v in {**status, **patch}.items() if v is not None}


def play(one: AnyObject, job: AnyObject) -> tuple[AnyObject, AnyObject, int]:
    """Take steps until none is left, with workers that do as they are told."""
    for writes in range(20):
        todo: Step = step(one, job, native(job, len(jobs.target(job))), {key(one)})
        if todo.of_job is not None:
            job = structs.replace(job, status=merged(job.status, todo.of_job))
        elif todo.own is not None:
            one = structs.replace(one, status=merged(one.status, todo.own))
        else:
            return one, job, writes
    raise AssertionError("it never ends")


CASES: list[tuple[str, Json, tuple[int, ...], tuple[int, ...]]] = [
    ("ScaleOut", {"toAdd": {"count": 2}}, (0, 1), (0, 1, 2, 3)),
    ("ScaleOut", {"toAdd": {"count": 1}}, (0, 3), (0, 3, 4)),
    ("ScaleIn", {"toDelete": {"count": 1}}, (0, 1, 2), (0, 1)),
    ("ScaleIn", {"toDelete": {"podNames": ["elastic-worker-0"]}}, (0, 1, 2), (1, 2)),
]


@pytest.mark.parametrize(("kind", "spec", "before", "after"), CASES)
def test_the_job_gets_the_workers_asked_for(
    kind: str, spec: Json, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    one, job, writes = play(scaler(kind, **spec), elastic(*before))
    assert one.status["phase"] == "ScaleSucceeded"
    assert jobs.target(job) == [f"elastic-worker-{i}" for i in after]
    assert "currentScaler" not in job.status
    made = native(job, 0)
    assert tuple(indices(made.spec.roles[1])) == after
    assert problems(made) == []
    assert writes == 5


@pytest.mark.parametrize(("kind", "spec", "before", "after"), CASES)
def test_a_step_taken_twice_changes_nothing_more(
    kind: str, spec: Json, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    one, job = scaler(kind, **spec), elastic(*before)
    for _ in range(5):
        todo = step(one, job, native(job, len(jobs.target(job))), {key(one)})
        again = step(one, job, native(job, len(jobs.target(job))), {key(one)})
        assert todo == again
        job = structs.replace(job, status=merged(job.status, todo.of_job or {}))
        one = structs.replace(one, status=merged(one.status, todo.own or {}))
    assert jobs.target(job) == [f"elastic-worker-{i}" for i in after]
    assert difference(job.status, elastic(*after).status) == {}


BAD: list[tuple[str, Json, Json, str]] = [
    ("ScaleOut", {"toAdd": {"count": 9}}, {}, "spec.toAdd.count"),
    ("ScaleOut", {}, {}, "spec.toAdd.count"),
    ("ScaleOut", {"toAdd": {"count": 1}, "script": "x.sh"}, {}, "spec.script"),
    ("ScaleIn", {"toDelete": {"count": 2}}, {}, "spec.toDelete"),
    ("ScaleIn", {"toDelete": {"podNames": ["someone"]}}, {}, "spec.toDelete.podNames"),
    ("ScaleIn", {"toDelete": {"count": 1}}, {"completionTime": "now"}, "spec.selector.name"),
]


@pytest.mark.parametrize(("kind", "spec", "status", "field"), BAD)
def test_what_cannot_be_fails_and_names_the_field(
    kind: str, spec: Json, status: Json, field: str
) -> None:
    one, job, _ = play(scaler(kind, **spec), elastic(**status))
    assert one.status["phase"] == "ScaleFailed"
    assert one.status["message"].startswith(field)
    assert "currentScaler" not in job.status


def test_two_scalers_take_turns() -> None:
    first = structs.replace(scaler("ScaleIn", toDelete={"count": 1}), status={"phase": "Scaling"})
    job = elastic(0, 1, currentScaler=key(first))
    second = scaler("ScaleOut", toAdd={"count": 1})
    todo = step(second, job, None, {key(first), key(second)})
    assert todo.own == {"phase": "Created", "message": f"waits for {key(first)}"}
    # One that was deleted in the midst of it holds nobody up.
    assert step(second, job, None, {key(second)}).of_job == {"currentScaler": key(second)}
