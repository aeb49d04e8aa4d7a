"""Why something waits, in plain words, and what would change it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.api.dataset_cache import DatasetCache
from lockstep.api.diagnosis import Diagnosis
from lockstep.api.gang import Gang
from lockstep.api.simulated import pretends
from lockstep.api.start import Start, split_start
from lockstep.api.training import TrainingJob
from lockstep.api.wire import to_builtins
from lockstep.cli.views import gangs
from lockstep.cli.views.history import doing, last_end
from lockstep.cli.views.jobs import ran
from lockstep.cli.views.pods import state
from lockstep.cli.views.table import cell
from lockstep.cli.views.times import ago, until

NOT_EXECUTED = "simulated: its pods take their time on simulated nodes, and no command is executed"


def explain_job(job: TrainingJob, gang: Gang | None, now: float) -> list[str]:
    """Return why the job is where it is, and whether it only pretends."""
    lines = [*_explain_job(job, gang, now), *_verdict(job)]
    return [*lines, f"  {NOT_EXECUTED}"] if pretends(job) else lines


def explain_deleted(job: TrainingJob, now: float) -> list[str]:
    """Return how a job that was deleted had come along until then."""
    if job.status.phase in ("Succeeded", "Failed"):
        return explain_job(job, None, now)
    did = f"it was {job.status.phase or 'new'}, {_restarts(job.status.restarts)}"
    message = [f"  {cell(job.status.message)}"] if job.status.message else []
    return [f"until then {did}", *message, *_verdict(job)]


def _verdict(job: TrainingJob) -> list[str]:
    """Return what is known of the last failure, and how its first rank ended."""
    if job.status.diagnosis is not None and job.status.phase != "Succeeded":
        first, *rest = words(job.status.diagnosis)
        ends = [f"  how it ended: {one}" for one in last_end(job)]
        what = "why" if job.status.phase == "Starting" else "last failure"
        return [f"  {what}: {first}", *ends, *(f"  {line}" for line in rest)]
    return []


def _explain_job(job: TrainingJob, gang: Gang | None, now: float) -> list[str]:
    status = job.status
    name = f"job {job.metadata.name}"
    message = cell(status.message)
    if status.phase == "Succeeded":
        return [f"{name} is done: it ran for {ran(job, now)} with {_restarts(status.restarts)}"]
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
        what = doing(job, now) or f"runs since {ago(status.start_time, now)}"
        lines = [f"{name} {what}, {_restarts(status.restarts)}"]
        return [*lines, *([f"  {message}"] if status.message else [])]
    lines = [f"{name} is {status.phase.lower()}"]
    if refused := _refused(job):
        return [*lines, f"  why: {cell(refused)}", *_remedy(refused)]
    if gang is None or not gangs.waits(gang) or status.phase == "Deleting":
        return [*lines, f"  {message}"] if status.message else lines
    after = [c.message for c in status.conditions if c.type == "Restarting" and c.status == "True"]
    lines += [f"  after this: {cell(text)}" for text in after if text]
    return [*lines, *explain_gang(gang, now)]


def _refused(job: TrainingJob) -> str:
    """Return what the server or the controller would not have of the job."""
    refusals = ("Refused", "InvalidSpec")
    created = (c for c in job.status.conditions if c.type == "Created" and c.status == "False")
    return next((c.message for c in created if c.reason in refusals), "")


def _remedy(refused: str) -> list[str]:
    """Return what would change a refusal, where that is known."""
    missing = re.search(r"no PriorityClass with name (\S+)", refused)
    if missing is None:
        return []
    made = f"Create the PriorityClass {missing[1]}, or submit with another --priority."
    return [f"  what would change it: {made}"]


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


def facts(subject: TrainingJob | Gang | Pod) -> dict[str, object]:
    """Return for programs what the words are about: phase, reason, message, and what may help."""
    status = subject.status
    found: dict[str, object] = {"phase": status.phase, "message": status.message}
    if isinstance(subject, Gang):
        gang = subject.status
        found |= {
            "reason": gang.reason,
            "remedy": gang.remedy,
            "queue": subject.spec.queue,
            "position": gang.position,
            "estimatedStart": gang.estimated_start,
            "noEstimate": gang.no_estimate,
        }
    return found


def explain_pod(pod: Pod, now: float) -> list[str]:
    """Return where the pod is, or why it waits for a node."""
    name = f"pod {pod.metadata.name}"
    if pod.spec.node_name:
        message = f": {cell(pod.status.message)}" if pod.status.message else ""
        return [f"{name} is on node {pod.spec.node_name}, {state(pod)}{message}"]
    since = ago(pod.metadata.creation_timestamp, now)
    lines = [f"{name} waits for a node since {since}"]
    told = [c for c in pod.status.conditions if c.type == "PodScheduled" and c.message]
    if pod.spec.scheduler_name != names.SCHEDULER_NAME and not told:
        named = pod.spec.scheduler_name or "default-scheduler"
        lines += [
            f"  why: the pod asks for the scheduler {named}; Lockstep places only pods with "
            f"schedulerName {names.SCHEDULER_NAME}",
            "  what would change it: create the pod again with "
            f"spec.schedulerName: {names.SCHEDULER_NAME}; the field cannot be changed",
        ]
    for condition in told:
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


def data_lines(claim: str, caches: Iterable[DatasetCache]) -> list[str]:
    """Return a line for the dataset *claim*, if it is one: which node has how much of it."""
    known = [one for one in caches if one.spec.dataset == claim]
    if not known:
        return []
    shares = sorted(((_share(one), one.spec.node) for one in known), reverse=True)
    told = ", ".join(f"{node} has {share} %" for share, node in shares[:5])
    more = f", {len(shares) - 5} nodes more" if len(shares) > 5 else ""
    return [f"  data: of {claim} {told}{more}; the scheduler prefers nodes with more of it"]


def _share(cache: DatasetCache) -> int:
    status = cache.status
    if status.whole:
        return 100
    return min(99, int(100 * status.cached_bytes / status.bytes)) if status.bytes else 0


def claims_within(obj: Any) -> list[str]:
    """Return the claims that pods' templates in *obj* mount, each once."""
    return list(dict.fromkeys(_claims(to_builtins(obj))))


def _claims(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        claim = tree.get("persistentVolumeClaim")
        if isinstance(claim, dict) and isinstance(name := claim.get("claimName"), str):
            yield name
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _claims(one)


def words(verdict: Diagnosis) -> list[str]:
    """Return what was the matter, where, how sure that is, what to do, and the evidence."""
    lines = [f"{verdict.class_}: {cell(verdict.cause)}"]
    place = verdict.place
    where = [
        *(f"node {name}" for name in place.nodes),
        *(f"rank {rank}" for rank in place.ranks),
        *place.devices,
    ]
    if where:
        lines.append(f"  where: {', '.join(where[:16])}" + (" ..." if len(where) > 16 else ""))
    lines.append(f"  what to do: {verdict.action.replace('_', ' ')}")
    lines.append(f"  confidence: {verdict.confidence:.0%}")
    return [*lines, *(f"  evidence: {cell(line)}" for line in verdict.evidence)]
