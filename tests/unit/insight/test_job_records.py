"""A job stays on record after it is gone: with its history, and without its secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import structs
from tests.support.jobs import job, role

from lockstep.api import timestamp
from lockstep.api.goodput import Goodput, spent
from lockstep.api.job_history import Attempt, History, Span
from lockstep.api.job_record import JobRecord, closed
from lockstep.api.packing import unpack
from lockstep.api.training import TrainingJob
from lockstep.insight.history.job_recorder import JobRecorder, told
from lockstep.insight.history.store import Store
from lockstep.kube.informer import Informer

AT = timestamp.show
T0 = 1_700_000_000.0


@dataclass
class FakeJobs:
    """The jobs of a server, in place of an informer."""

    there: dict[tuple[str, str], TrainingJob] = field(default_factory=dict)

    def get(self, namespace: str, name: str) -> TrainingJob | None:
        return self.there.get((namespace, name))

    def __iter__(self) -> Iterator[TrainingJob]:
        return iter(self.there.values())


class Recorded:
    """A recorder on a file, and the jobs that it sees."""

    def __init__(self, folder: Path) -> None:
        self.jobs, self.now = FakeJobs(), T0
        self.store = Store(folder / "usage.db")
        seen = cast("Informer[TrainingJob]", self.jobs)
        self.recorder = JobRecorder(seen, self.store, clock=lambda: self.now)

    def see(self, given: TrainingJob) -> None:
        key = (given.metadata.namespace, given.metadata.name)
        self.jobs.there[key] = given
        asyncio.run(self.recorder.reconcile(key))

    def delete(self, given: TrainingJob, *, told: bool = True) -> None:
        key = (given.metadata.namespace, given.metadata.name)
        del self.jobs.there[key]
        if told:
            asyncio.run(self.recorder.reconcile(key))

    def on_record(
        self, name: str = "", most: int = 1_000_000, since: float = 0.0
    ) -> list[JobRecord]:
        space = job(role()).metadata.namespace
        text = told(self.store, space, name, since, most)
        found: list[JobRecord] = unpack(text, list[JobRecord])
        return found


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def lived(uid: str = "u1", created: float = T0, **status: Any) -> TrainingJob:
    made = job(role())
    meta = structs.replace(made.metadata, uid=uid, creation_timestamp=AT(created))
    return structs.replace(made, metadata=meta, status=structs.replace(made.status, **status))


RUNNING: dict[str, Any] = {
    "phase": "Running",
    "restarts": 1,
    "goodput": Goodput(cause="productive", since=AT(T0 + 10), seconds={"waiting": 10.0}),
    "history": History(
        spans=[
            Span(phase="queued", begin=AT(T0), end=AT(T0 + 10)),
            Span(phase="productive", begin=AT(T0 + 10)),
        ],
        attempts=[Attempt(number=0, begin=AT(T0 + 10))],
    ),
}


def test_a_deleted_job_keeps_its_history(recorded: Recorded) -> None:
    given = lived(**RUNNING)
    recorded.see(given)
    recorded.now += 70
    recorded.delete(given)
    (record,) = recorded.on_record(given.metadata.name)
    assert record.deleted == AT(T0 + 70)
    past = closed(record).status
    assert [span.end for span in past.history.spans] == [AT(T0 + 10), AT(T0 + 70)]
    assert past.history.attempts[0].end == AT(T0 + 70)
    assert spent(past.goodput, T0 + 9e6) == {"waiting": 10.0, "productive": 60.0}


def test_what_a_job_did_outlasts_its_deletion(recorded: Recorded) -> None:
    recorded.see(lived(**RUNNING, message="it runs"))
    recorded.see(lived(**{**RUNNING, "phase": "Deleting"}, message="being deleted"))
    (record,) = recorded.on_record()
    assert (record.job.status.phase, record.job.status.message) == ("Running", "it runs")


def test_jobs_of_one_name_are_told_newest_first(recorded: Recorded) -> None:
    first, second = lived("u1"), lived("u2", created=T0 + 100)
    recorded.see(first)
    recorded.see(second)
    recorded.now += 200
    recorded.recorder.close_gone()
    found = recorded.on_record(first.metadata.name)
    assert [(one.job.metadata.uid, bool(one.deleted)) for one in found] == [
        ("u2", False),
        ("u1", True),
    ]
    assert recorded.on_record("another") == []


def test_a_deletion_that_no_recorder_saw_is_found(recorded: Recorded) -> None:
    given = lived()
    recorded.see(given)
    recorded.delete(given, told=False)
    recorded.now += 5
    recorded.recorder.close_gone()
    assert [one.deleted for one in recorded.on_record()] == [AT(T0 + 5)]


def test_records_are_dropped_by_age(recorded: Recorded) -> None:
    given = lived()
    recorded.see(given)
    recorded.delete(given)
    recorded.store.forget_jobs(T0 - 1)
    assert len(recorded.on_record()) == 1
    recorded.store.forget_jobs(T0 + 1)
    assert recorded.on_record() == []


def test_a_record_holds_no_environment_and_no_annotations(recorded: Recorded) -> None:
    main = {"name": "main", "command": ["train"], "env": [{"name": "TOKEN", "value": "s3cret"}]}
    made = role(template={"spec": {"containers": [main], "volumes": [{"name": "s3cret"}]}})
    given = job(made)
    meta = structs.replace(given.metadata, uid="u", annotations={"applied": "s3cret"})
    recorded.see(structs.replace(given, metadata=meta))
    (record,) = recorded.on_record()
    assert "s3cret" not in repr(record)
    assert record.job.spec.roles[0].template["spec"]["containers"][0]["command"] == ["train"]


def test_jobs_of_a_namespace_before_are_told_to_none(recorded: Recorded) -> None:
    for number in range(4):
        recorded.see(lived(f"u{number}", created=T0 + number))
    found = recorded.on_record(since=T0 + 2)
    assert [one.job.metadata.uid for one in found] == ["u3", "u2"]


def test_an_answer_holds_as_many_jobs_as_fit(recorded: Recorded) -> None:
    for number in range(50):
        recorded.see(lived(f"u{number}", created=T0 + number, message=f"{number:x}" * 40))
    whole = len(told(recorded.store, lived().metadata.namespace, "", 0.0, 1_000_000))
    fewer = recorded.on_record(most=whole // 2)
    assert 0 < len(fewer) < 50
    assert fewer[0].job.metadata.uid == "u49"
