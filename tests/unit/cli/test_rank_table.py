"""``lockstep top JOB``: a row a rank, as its launcher reports it."""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep.api.core import Lease, Pod
from lockstep.api.names import REPORT_ANNOTATION
from lockstep.api.training import TrainingJob
from lockstep.cli.views.ranks import rank_table, summary

JOB = {
    "metadata": {"name": "digits", "namespace": "default"},
    "spec": {"framework": "pytorch", "roles": [{"name": "worker", "template": {}}]},
    "status": {
        "generation": 2,
        "phase": "Running",
        "goodput": {"cause": "productive", "seconds": {"productive": 90.0, "waiting": 10.0}},
    },
}
FIGURES = {"local": 0, "pid": 77, "steps": 5, "at": 98.0, "seconds": 0.25, "p99": 1.5, "data": 0.4}


def rows(**report: Any) -> list[tuple[str, ...]]:
    told = {"uid": "u", "generation": 2, "state": "Running", **report}
    annotations = {REPORT_ANNOTATION: msgspec.json.encode(told).decode()}
    meta = {"name": "digits-worker-0", "annotations": annotations}
    lease = msgspec.convert({"metadata": meta}, Lease)
    pod = msgspec.convert(
        {"metadata": {"name": "digits-worker-0"}, "spec": {"nodeName": "n1", "containers": []}}, Pod
    )
    job = msgspec.convert(JOB, TrainingJob)
    return list(rank_table(job, [lease], [pod], 100.0).rows)


def test_a_rank_shows_how_it_steps() -> None:
    where = ("digits-worker-0", "0", "n1")
    assert rows(ranks=[FIGURES]) == [
        (*where, "Running", "5", "0.25", "1.5", "40", "-", "2", "77"),
    ]
    assert rows(ranks=[{**FIGURES, "suspect": True, "gpuMemory": 2 * 10**9}]) == [
        (*where, "may hang", "5", "0.25", "1.5", "40", "2.0", "2", "77"),
    ]


def test_ranks_without_steps_and_launchers_without_ranks_show_too() -> None:
    assert rows(ranks=[{"local": 0, "pid": 7}])[0][4:6] == ("0", "-")
    assert rows(state="Ready")[0][1:4] == ("-", "n1", "Ready")
    assert rows(generation=1) == []


def test_the_last_line_tells_the_goodput() -> None:
    job = msgspec.convert(JOB, TrainingJob)
    assert summary(job, 100.0) == "productive; goodput 90 % (waiting 10 %)"
