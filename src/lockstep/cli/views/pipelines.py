"""Runs of pipelines as text: the graph as a tree, with states and times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lockstep.api import duration, timestamp
from lockstep.api.core import ConfigMap, Pod
from lockstep.api.names import JOB_LABEL
from lockstep.api.pipeline import PipelineRun, StepStatus
from lockstep.cli.views.table import NAMESPACE, Column, Table, cell, plain, table
from lockstep.cli.views.times import ago, between

MOST = 200
"""Most steps that are drawn one by one."""


def pipeline_table(runs: Iterable[PipelineRun], now: float) -> Table:
    """Return the table of runs, the newest first."""
    ordered = sorted(runs, key=lambda run: run.metadata.creation_timestamp or "", reverse=True)
    columns = (NAMESPACE, "Name", "Phase", "Steps", "Time", "Age", Column("Message", text=True))
    return table(columns, (_row(run, now) for run in ordered))


def _row(run: PipelineRun, now: float) -> tuple[object, ...]:
    status, meta = run.status, run.metadata
    took = between(status.started_at, status.completion_time, now) if status.started_at else ""
    age = ago(meta.creation_timestamp, now)
    return meta.namespace, meta.name, status.phase, status.progress, took, age, status.message


def waited(pods: Iterable[Pod], now: float) -> dict[str, str]:
    """Return how long each pod waited for its place, or waits by now: by pod, and by job.

    A job waited as long as the last of its pods that has its place.
    """
    found = {}
    jobs: dict[str, tuple[str, str]] = {}
    for pod in pods:
        placed = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        there = placed is not None and placed.status == "True"
        since = placed.last_transition_time if placed is not None and there else None
        began = pod.metadata.creation_timestamp
        if began:
            end = since or pod.status.start_time
            found[pod.metadata.name] = between(began, end, now)
            if job := pod.metadata.labels.get(JOB_LABEL):
                # One that still waits has no end, and is the last in any case.
                jobs[job] = max(jobs.get(job, ("", "")), (end or "~", began))
    of_jobs = {job: between(b, None if e == "~" else e, now) for job, (e, b) in jobs.items()}
    return found | of_jobs


def describe(
    run: PipelineRun,
    steps: Mapping[str, StepStatus],
    now: float,
    waits: Mapping[str, str],
    costs: Mapping[str, str],
) -> Iterator[str]:
    """Yield the lines of a page about *run*: what it is, its graph, its results.

    *waits* and *costs* say of each pod and job how long it waited and what it cost.
    """
    status = run.status
    yield f"Name:     {cell(run.metadata.name)}"
    yield f"Phase:    {status.phase}" + (f" ({status.progress} steps)" if status.progress else "")
    if status.message:
        yield f"Message:  {cell(status.message)}"
    if status.started_at:
        yield f"Time:     {between(status.started_at, status.completion_time, now)}"
    yield f"Queue:    {cell(run.spec.queue)}"
    if steps:
        yield ""
        yield plain(graph(steps, now, waits, costs))
    if status.outputs:
        yield ""
        yield "Outputs:"
        for name, value in sorted(status.outputs.items()):
            yield f"  {cell(name)} = {cell(json.dumps(value, ensure_ascii=False))}"


def graph(
    steps: Mapping[str, StepStatus], now: float, waits: Mapping[str, str], costs: Mapping[str, str]
) -> Table:
    """Return the steps as a tree, each under the graph or the loop that it is part of.

    Where nothing is known of costs, there is no column of them.
    """
    said = Column("Message", text=True)
    cost = ("Cost",) if costs else ()
    columns = ("Step", "State", "After", "Waited", "Time", *cost, "Tries", "Runs as", said)
    tree = list(_tree(steps))
    rows: list[tuple[str, ...]] = [
        (*head, *map(cell, _step(steps[place], now, waits, costs))) for place, head in tree[:MOST]
    ]
    shown = table(columns, (row[1:] for row in rows))
    if len(tree) > MOST:
        rows.append(("", f"... {len(tree) - MOST} more", *[""] * (len(columns) - 1)))
        shown = table(columns, (row[1:] for row in rows))
    # The branches of the tree begin with spaces, which a cell has none of.
    drawn = (row[0] for row in rows)
    lines = zip(drawn, shown.rows, strict=True)
    return Table(shown.columns, tuple((head + row[0], *row[1:]) for head, row in lines))


def _step(
    one: StepStatus, now: float, waits: Mapping[str, str], costs: Mapping[str, str]
) -> tuple[object, ...]:
    took = between(one.started_at, one.finished_at, now) if one.started_at else ""
    state = "Kept" if one.kept_from else one.phase
    words = f"from {one.kept_from}" if one.kept_from else one.message
    after = ", ".join(place.rpartition(".")[2] for place in one.after)
    runs = one.object or ("" if one.kind in ("Pod", "Object") else one.kind.lower())
    name = one.object.rpartition("/")[2]
    cost = (costs.get(name, ""),) if costs else ()
    tries = one.attempt + 1 if one.object else ""
    return state, after, waits.get(name, ""), took, *cost, tries, runs, words


def _tree(steps: Mapping[str, StepStatus]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each step's place, and its branch and its name in the tree, parents first."""
    below: dict[str, list[str]] = {}
    levels: dict[str, int] = {}
    for place in sorted(steps, key=_natural):
        below.setdefault(place.rpartition(".")[0], []).append(place)
    for places in below.values():
        places.sort(key=lambda place: _level(place, steps, levels))
    left: list[tuple[str, str, str]] = [(place, "", "") for place in reversed(below.get("", []))]
    while left:
        place, head, tail = left.pop()
        one = steps[place]
        last = place.rpartition(".")[2]
        name = f"{last} {one.item}" if one.item else last
        yield place, (head, name)
        left += reversed(_children(below.get(place, ()), tail))


def _natural(place: str) -> list[tuple[int, str]]:
    """Return what orders items of loops by their numbers."""
    return [(int(p), "") if p.isdigit() else (0, p) for p in place.split(".")]


def _level(place: str, steps: Mapping[str, StepStatus], known: dict[str, int]) -> int:
    """Return how many steps come one after the other before the one at *place*."""
    path = [place]
    while path:
        at = path[-1]
        before = [b for b in steps[at].after if b in steps]
        if missing := [b for b in before if b not in known and b not in path]:
            path.append(missing[0])
            continue
        known[at] = 1 + max((known.get(b, 0) for b in before), default=0)
        path.pop()
    return known[place]


def _children(places: Sequence[str], tail: str) -> list[tuple[str, str, str]]:
    found = []
    for number, place in enumerate(places):
        last = number == len(places) - 1
        found.append((place, tail + ("└─ " if last else "├─ "), tail + ("   " if last else "│  ")))
    return found


def kept(found: Sequence[ConfigMap], now: float) -> Table:
    """Return the table of kept results, the newest first."""
    ordered = sorted(found, key=lambda one: one.data.get("at", ""), reverse=True)
    rows: Iterable[tuple[Any, ...]] = (
        (one.metadata.name, one.data.get("from"), ago(one.data.get("at"), now), _end(one, now))
        for one in ordered
    )
    return table(("Name", "From", "Age", "Ends"), rows)


def _end(one: ConfigMap, now: float) -> str:
    """Return in how long a kept result is used no more."""
    end = timestamp.read(one.data.get("ends"))
    if end is None:
        return "never"
    return f"in {duration.show(end - now)}" if end > now else "ended"
