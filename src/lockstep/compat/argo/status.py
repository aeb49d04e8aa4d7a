"""How a run is doing, in the words of a Workflow's status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lockstep.api.pipeline import PipelineRun, StepStatus
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.argo.expressions import ARTIFACT, quote
from lockstep.compat.argo.translate import MAIN

_PHASES: Final[Mapping[str, str]] = {
    "Waiting": "Pending",
    "Pending": "Pending",
    "Running": "Running",
    "Suspended": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Stopped": "Failed",
    "Skipped": "Skipped",
    "Omitted": "Omitted",
}
_TYPES: Final[Mapping[str, str]] = {
    "Pod": "Pod",
    "Object": "Pod",
    "Graph": "DAG",
    "Loop": "TaskGroup",
    "Suspend": "Suspend",
    "Values": "Pod",
}


def status(
    name: str, run: PipelineRun | None, steps: Mapping[str, StepStatus], wrong: Sequence[Problem]
) -> Json:
    """Return the status of the workflow *name* that has become *run*, or cannot."""
    if wrong:
        return {"phase": "Error", "message": "; ".join(str(one) for one in wrong)[:2000]}
    if run is None:
        return {"phase": "Pending"}
    found: Json = {
        "phase": _PHASES[run.status.phase],
        "message": run.status.message.removeprefix("main: "),
        "startedAt": run.status.started_at,
        "finishedAt": run.status.completion_time,
        "progress": _progress(steps),
        "nodes": {one["id"]: one for one in _nodes(name, steps)},
    }
    over = run.status.completion_time is not None
    found["conditions"] = [
        {"type": "Completed", "status": "True" if over else "False"},
        {"type": "PodRunning", "status": "False" if over else "True"},
    ]
    return {key: value for key, value in found.items() if value not in ("", None)}


def _progress(steps: Mapping[str, StepStatus]) -> str:
    pods = [one for one in steps.values() if one.kind in ("Pod", "Object")]
    ran = [one for one in pods if one.phase not in ("Skipped", "Omitted")]
    return f"{sum(one.phase == 'Succeeded' for one in ran)}/{len(ran)}"


def _nodes(name: str, steps: Mapping[str, StepStatus]) -> Iterator[Json]:
    """Return a node for each step below the workflow itself, whose name is the workflow's."""
    root = f"{MAIN}.main"
    below: dict[str, list[str]] = {}
    for place in steps:
        below.setdefault(place.rpartition(".")[0], []).append(place)
    for place, one in steps.items():
        if place == MAIN:
            continue
        parent = place.rpartition(".")[0]
        full = name + place.removeprefix(root) if place.startswith(root) else f"{name}.onExit"
        node: Json = {
            "id": _id(name, place),
            "name": full,
            "displayName": name if place == root else one.name,
            "type": "Skipped" if one.phase in ("Skipped", "Omitted") else _TYPES[one.kind],
            "templateName": one.template,
            "phase": _PHASES[one.phase],
            "message": one.message,
            "startedAt": one.started_at,
            "finishedAt": one.finished_at,
            "boundaryID": "" if parent == MAIN else _id(name, parent),
            "children": [_id(name, child) for child in below.get(place, ())],
            "memoizationStatus": {"hit": True} if one.kept_from else None,
            "outputs": _outputs(one),
        }
        yield {key: value for key, value in node.items() if value not in ("", None, [])}


def _id(name: str, place: str) -> str:
    rest = place.removeprefix(f"{MAIN}.main").lstrip(".")
    return f"{name}-{rest.replace('.', '-')}" if rest else name


def _outputs(one: StepStatus) -> Json | None:
    given = dict(one.outputs)
    result = given.pop("result", None)
    parameters = [
        {"name": name, "value": value if isinstance(value, str) else quote(value)}
        for name, value in given.items()
        if not (isinstance(value, dict) and "uri" in value)
    ]
    artifacts = [
        {"name": name.removeprefix(ARTIFACT), "s3": {"key": value["uri"]}}
        for name, value in given.items()
        if isinstance(value, dict) and "uri" in value
    ]
    found: Json = {}
    if parameters:
        found["parameters"] = parameters
    if artifacts:
        found["artifacts"] = artifacts
    if isinstance(result, str):
        found["result"] = result
    return found or None
