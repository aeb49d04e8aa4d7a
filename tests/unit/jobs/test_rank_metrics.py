"""Prometheus gets the figures of ranks that run now, and of no others."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from lockstep.api.core import Lease
from lockstep.api.names import JOB_LABEL, REPORT_ANNOTATION
from lockstep.api.training import TrainingJob
from lockstep.jobs.metrics import RankMetrics

LABELS = {"namespace": "team", "job": "train", "pod": "train-worker-0", "local_rank": "1"}


class Held(dict[tuple[str, str], Any]):
    """A fake informer: what it holds, by namespace and name."""

    def get(self, *key: Any) -> Any:
        return super().get(key)

    def __iter__(self) -> Any:
        return iter(self.values())


def value(name: str, **report: Any) -> float | None:
    body = {
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {"framework": "pytorch", "roles": [{"name": "worker", "template": {}}]},
        "status": {"generation": 2},
    }
    told = {"uid": "u", "generation": 2, "state": "Running", **report}
    meta = {
        "name": "train-worker-0",
        "namespace": "team",
        "labels": {JOB_LABEL: "train"},
        "annotations": {REPORT_ANNOTATION: msgspec.json.encode(told).decode()},
    }
    jobs = Held({("team", "train"): msgspec.convert(body, TrainingJob)})
    leases = Held({("team", "train-worker-0"): msgspec.convert({"metadata": meta}, Lease)})
    registry = CollectorRegistry()
    registry.register(RankMetrics(cast(Any, jobs), cast(Any, leases)))
    return registry.get_sample_value(f"lockstep_training_{name}", LABELS)


STEPPED = {"local": 1, "steps": 7, "at": 1000.5, "seconds": 0.25, "data": 0.5}


@pytest.mark.parametrize(
    ("name", "rank", "wanted"),
    [
        ("steps", STEPPED, 7),
        ("step_seconds", STEPPED, 0.25),
        ("last_step_timestamp_seconds", STEPPED, 1000.5),
        ("data_wait_ratio", STEPPED, 0.5),
        ("step_seconds", {"local": 1}, None),
        ("suspect", {**STEPPED, "suspect": True}, 1),
        ("gpu_memory_bytes", STEPPED, None),
    ],
)
def test_a_figure_is_exported_once_it_is_known(
    name: str, rank: dict[str, Any], wanted: float | None
) -> None:
    assert value(name, ranks=[rank]) == wanted


@pytest.mark.parametrize("stale", [{"generation": 1}, {"state": "Failed"}])
def test_ranks_that_do_not_run_have_no_figures(stale: dict[str, Any]) -> None:
    assert value("steps", ranks=[STEPPED], **stale) is None
