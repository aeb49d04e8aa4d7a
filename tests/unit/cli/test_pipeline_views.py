"""Runs of pipelines as text."""

from __future__ import annotations

from lockstep.api import timestamp
from lockstep.api.core import Pod
from lockstep.api.pipeline import StepStatus
from lockstep.api.wire import convert
from lockstep.cli.views.pipelines import graph, waited
from lockstep.cli.views.table import plain

NOW = timestamp.parse("2026-03-10T10:01:00Z")


def pod(name: str, placed: str) -> Pod:
    said = {"type": "PodScheduled", "status": "True" if placed else "False"}
    said["lastTransitionTime"] = placed or "2026-03-10T10:00:01Z"
    meta = {"name": name, "creationTimestamp": "2026-03-10T10:00:00Z"}
    return convert({"metadata": meta, "status": {"conditions": [said]}}, Pod)


def test_a_step_says_how_long_it_waited_for_its_place() -> None:
    waits = waited([pod("ran", "2026-03-10T10:00:20Z"), pod("waits", "")], NOW)
    assert waits == {"ran": "20s", "waits": "1m"}
    steps = {"main": StepStatus(name="main", object="ran"), "b": StepStatus(object="other")}
    head, *lines = plain(graph(steps, NOW, waits)).splitlines()
    assert head.split()[3] == "WAITED"
    assert [("20s" in line) for line in lines] == [False, True]
