"""Why something waits, in plain words, and what would change it."""

from __future__ import annotations

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.api.gang import Gang
from lockstep.api.start import Start, split_start
from lockstep.api.training import TrainingJob
from lockstep.cli.views import gangs
from lockstep.cli.views.pods import state
from lockstep.cli.views.table import cell
from lockstep.cli.views.times import ago, between, until


def explain_job(job: TrainingJob, gang: Gang | None, now: float) -> list[str]:
    """Return why the job is where it is."""
    status = job.status
    name = f"job {job.metadata.name}"
    message = cell(status.message)
    if status.phase == "Succeeded":
        took = between(status.start_time, status.completion_time, now)
        return [f"{name} is done: it ran for {took} with {_restarts(status.restarts)}"]
    if status.phase == "Failed":
        return [
            f"{name} has failed after {_restarts(status.restarts)}: {message}",
            f"its logs: lockstep logs {job.metadata.name}",
        ]
    if job.spec.suspend:
        return [
            f"{name} is suspended: it holds no place",
            f"to go on: lockstep resume {job.metadata.name}",
        ]
    if status.phase == "Running":
        lines = [f"{name} runs since {ago(status.start_time, now)}, {_restarts(status.restarts)}"]
        return [*lines, *([f"  {message}"] if status.message else [])]
    lines = [f"{name} is {status.phase.lower()}"]
    if gang is None or not gangs.waits(gang):
        return [*lines, f"  {message}"] if status.message else lines
    return [*lines, *explain_gang(gang, now)]


def explain_gang(gang: Gang, now: float) -> list[str]:
    """Return why the gang waits, or where it is."""
    status = gang.status
    name = f"gang {gang.metadata.name}"
    needed = gangs.minimum(gang)
    if status.phase == "Failed":
        helps = [f"  what would change it: {cell(status.remedy)}"] if status.remedy else []
        return [f"{name} has failed: {cell(status.message)}", *helps]
    if not gangs.waits(gang):
        where = f" on {gangs.domain(gang)}" if status.domain else ""
        return [f"{name} is {status.phase.lower()}{where}: {status.bound} bound of {needed} needed"]
    since = ago(status.waiting_since or gang.metadata.creation_timestamp, now)
    place = f", {_ordinal(status.position)} in line" if status.position else ""
    lines = [
        f"{name} waits since {since} in queue {gang.spec.queue}{place}",
        f"  why: {cell(gangs.why(gang))}",
    ]
    if status.members < needed:
        lines.append(f"  {status.members} of its {needed} pods exist so far")
    lines += _estimate(gang, now)
    if status.remedy:
        lines.append(f"  what would change it: {cell(status.remedy)}")
    odd = (c for c in status.conditions if c.type != "Placed" and c.status == "True" and c.message)
    return [*lines, *(f"  note: {cell(c.message)}" for c in odd)]


def _estimate(gang: Gang, now: float) -> list[str]:
    """Say when the gang is to start and how old that estimate is, or why there is none."""
    status = gang.status
    if not status.no_estimate and status.estimated_start is None:
        return []
    age = f" (worked out {ago(status.estimated_at, now)} ago)" if status.estimated_at else ""
    start = Start(status.estimated_start, status.no_estimate, status.not_before)
    return _start(start, now, age)


def _start(start: Start, now: float, age: str = "") -> list[str]:
    if start.at is None:
        limit = f", not before {start.not_before}" if start.not_before is not None else ""
        return [f"  no estimated start{limit}: {cell(start.why)}"]
    left = until(start.at, now)
    when = left if left == "now" else f"in {left}, at {start.at}"
    return [f"  estimated start: {when}{age}"]


def explain_pod(pod: Pod, now: float) -> list[str]:
    """Return where the pod is, or why it waits for a node."""
    name = f"pod {pod.metadata.name}"
    if pod.spec.node_name:
        message = f": {cell(pod.status.message)}" if pod.status.message else ""
        return [f"{name} is on node {pod.spec.node_name}, {state(pod)}{message}"]
    since = ago(pod.metadata.creation_timestamp, now)
    lines = [f"{name} waits for a node since {since}"]
    reasons = (c for c in pod.status.conditions if c.type == "PodScheduled" and c.message)
    for condition in reasons:
        why, start = split_start(condition.message)
        lines.append(f"  why: {cell(why)}")
        lines += _start(start, now) if start is not None else []
    if gang := pod.metadata.labels.get(names.GANG_LABEL):
        lines.append(f"  it starts with its gang: lockstep explain gang/{gang}")
    return lines


def _restarts(count: int) -> str:
    return {0: "no restart", 1: "1 restart"}.get(count, f"{count} restarts")


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
