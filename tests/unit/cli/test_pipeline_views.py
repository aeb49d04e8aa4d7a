"""Runs of pipelines as text."""

from __future__ import annotations

from lockstep.api import timestamp
from lockstep.api.core import ConfigMap, Pod
from lockstep.api.pipeline import StepStatus
from lockstep.api.wire import convert
from lockstep.cli.views.pipelines import graph, kept, waited
from lockstep.cli.views.table import plain

NOW = timestamp.parse("2026-03-10T10:01:00Z")


def pod(name: str, placed: str, job: str = "") -> Pod:
    said = {"type": "PodScheduled", "status": "True" if placed else "False"}
    said["lastTransitionTime"] = placed or "2026-03-10T10:00:01Z"
    labels = {"lockstep.dev/job": job} if job else {}
    meta = {"name": name, "creationTimestamp": "2026-03-10T10:00:00Z", "labels": labels}
    return convert({"metadata": meta, "status": {"conditions": [said]}}, Pod)


def test_a_step_says_how_long_it_waited_for_its_place() -> None:
    waits = waited([pod("ran", "2026-03-10T10:00:20Z"), pod("waits", "")], NOW)
    assert waits == {"ran": "20s", "waits": "1m"}
    steps = {"main": StepStatus(name="main", object="ran"), "b": StepStatus(object="other")}
    head, *lines = plain(graph(steps, NOW, waits, {})).splitlines()
    assert head.split()[3] == "WAITED"
    assert [("20s" in line) for line in lines] == [False, True]


def test_a_job_waited_as_long_as_its_last_pod() -> None:
    first, last = "2026-03-10T10:00:05Z", "2026-03-10T10:00:20Z"
    assert waited([pod("a", last, "j"), pod("b", first, "j")], NOW)["j"] == "20s"
    assert waited([pod("a", last, "j"), pod("b", "", "j")], NOW)["j"] == "1m"


def test_a_step_says_what_its_pod_or_job_cost() -> None:
    steps = {"a": StepStatus(object="p"), "b": StepStatus(object="TrainingJob/j")}
    costs = {"p": "1.20 EUR (0.5 GPU h)", "j": "3 GPU h"}
    head, *lines = plain(graph(steps, NOW, {}, costs)).splitlines()
    assert "COST" in head
    assert ["1.20 EUR (0.5 GPU h)" in lines[0], "3 GPU h" in lines[1]] == [True, True]
    assert "COST" not in plain(graph(steps, NOW, {}, {}))


def test_kept_results_say_when_they_end() -> None:
    ends = {"a": "2026-03-10T12:01:00Z", "b": "2026-03-10T09:00:00Z", "c": ""}
    maps = [
        convert(
            {
                "metadata": {"name": name},
                "data": {"from": "r/s", "at": "2026-03-10T09:00:00Z", **({"ends": e} if e else {})},
            },
            ConfigMap,
        )
        for name, e in ends.items()
    ]
    shown = {row.split()[0]: row.split()[3:] for row in plain(kept(maps, NOW)).splitlines()[1:]}
    assert shown == {"a": ["in", "2h"], "b": ["ended"], "c": ["never"]}
