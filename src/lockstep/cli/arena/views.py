"""What Arena's verbs show and do on a server."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Concatenate, Final, ParamSpec

import msgspec

from lockstep.api import duration, timestamp
from lockstep.api.core import CONFIG_MAPS, PODS, AnyObject, Pod
from lockstep.api.names import JOB_LABEL
from lockstep.api.resource import Resource
from lockstep.api.roles import gpus
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.wire import Json, to_builtins
from lockstep.cli.arena.build import OF_LABEL, TYPE_LABEL
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.output import Format, encode
from lockstep.cli.target import Target
from lockstep.cli.views.jobs import ended
from lockstep.kube.errors import NotFound

CLAIMS: Final = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, AnyObject
)
_WORDS: Final = {"Pending": "PENDING", "Starting": "PENDING", "Deleting": "DELETING"}
_NONE: Final = "N/A"
P = ParamSpec("P")


def _connected(
    work: Callable[Concatenate[Session, P], Awaitable[None]],
) -> Callable[Concatenate[Target, P], None]:
    """Return *work* as a function of the target whose session it takes."""

    def whole(target: Target, /, *args: P.args, **named: P.kwargs) -> None:
        run(target, lambda session: work(session, *args, **named))

    return whole


@_connected
async def show_list(session: Session, type_: str, output: str) -> None:
    """Print the jobs, of one type if that is named."""
    jobs = await _jobs(session)
    pods = await _pods(session)
    chosen = [job for job in jobs if type_ in ("", _type(job))]
    if output:
        print(encode([_tree(job, pods) for job in chosen], Format(output)), end="")
        return
    head = ("NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE")
    rows = []
    for job in chosen:
        nodes = ",".join(sorted({p.spec.node_name for p in _of(job, pods)} - {""}))
        asked = _asked(job)
        held = asked if nodes and not ended(job) else 0
        rows.append(
            (
                job.metadata.name,
                _status(job),
                _type(job).upper(),
                _duration(job),
                str(asked),
                str(held) if not ended(job) else _NONE,
                nodes or _NONE,
            )
        )
    _table(head, rows)


@_connected
async def show_one(session: Session, name: str, output: str) -> None:
    """Print a job and its instances."""
    job = await session.client.get(TRAINING_JOBS, name, session.namespace)
    pods = await _pods(session, name)
    if output:
        print(encode(_tree(job, pods), Format(output)), end="")
        return
    for word, value in (
        ("Name", name),
        ("Status", _status(job)),
        ("Namespace", job.metadata.namespace),
        ("Priority", job.spec.priority_class_name or _NONE),
        ("Trainer", _type(job).upper()),
        ("Duration", _duration(job)),
        ("Message", job.status.message),
    ):
        print(f"{word + ':':<11}{value}")
    print("\nInstances:")
    rows = [
        (p.metadata.name, p.status.phase, _age(p), p.spec.node_name or _NONE)
        for p in _of(job, pods)
    ]
    _table(("  NAME", "STATUS", "AGE", "NODE"), [("  " + row[0], *row[1:]) for row in rows])


@_connected
async def delete(session: Session, names: Sequence[str]) -> None:
    """Delete jobs with what was submitted beside them.

    Raises:
        CommandFailed: when one is not there.
    """
    missing = []
    for name in names:
        if not await _remove(session, name, session.namespace):
            missing.append(name)
        else:
            print(f"The training job {name} has been deleted successfully")
    if missing:
        raise CommandFailed(f"no such job: {', '.join(missing)}", "arena list shows them")


async def _remove(session: Session, name: str, space: str) -> bool:
    client = session.client
    try:
        await client.delete(TRAINING_JOBS, name, space, propagation="Background")
    except NotFound:
        return False
    beside: tuple[Resource[Any], ...] = (TRAINING_JOBS, CONFIG_MAPS)
    for res in beside:
        listing = await client.list(res, space, label_selector=f"{OF_LABEL}={name}")
        for one in listing.items:
            await client.delete(res, one.metadata.name, space, propagation="Background")
    return True


@_connected
async def prune(session: Session, since: str) -> None:
    """Delete jobs that ended longer ago than *since*.

    Raises:
        BadInput: when that is no time.
    """
    try:
        seconds = duration.parse(since)
    except ValueError as error:
        raise BadInput(f"--since: {error}", "write --since=10d") from None
    for job in await _jobs(session):
        end = job.status.completion_time
        if end is None or time.time() - timestamp.parse(end) < seconds:
            continue
        if await _remove(session, job.metadata.name, job.metadata.namespace):
            print(f"The training job {job.metadata.name} has been deleted successfully")


@_connected
async def change_size(session: Session, name: str, by: int) -> None:
    """Add workers to an elastic job, or take some away.

    Raises:
        BadInput: when it would have too few or too many.
        CommandFailed: when it is over.
    """
    path = TRAINING_JOBS.path(session.namespace, name)
    raw: Json = msgspec.json.decode(await session.client.get_raw(path))
    job = msgspec.convert(raw, TrainingJob)
    if ended(job):
        raise CommandFailed(f"job {name} has ended", "submit it again")
    role = next((one for one in raw["spec"]["roles"] if one["name"] == "worker"), None)
    if role is None or role.get("max") is None:
        raise BadInput(f"job {name} is not elastic", "submit it with arena submit etjob")
    wanted = role.get("replicas", 1) + by
    low, high = role.get("min") or 1, role["max"]
    if not low <= wanted <= high:
        told = f"--count: {abs(by)} would leave {wanted} workers, not {low} to {high}"
        raise BadInput(told, "choose another number")
    role["replicas"] = wanted
    patch = {
        "metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]},
        "spec": {"roles": raw["spec"]["roles"]},
    }
    await session.client.patch(TRAINING_JOBS, name, patch, session.namespace)
    print(f"The training job {name} is scaled to {wanted} workers")


@_connected
async def show_claims(session: Session) -> None:
    """Print the volumes that jobs can mount with ``--data``."""
    listing = await session.client.list(CLAIMS, session.scope(CLAIMS))
    rows = []
    for one in listing.items:
        modes = ",".join(one.spec.get("accessModes") or []) or _NONE
        notes = one.metadata.annotations
        told = notes.get("description", ""), notes.get("owner", "")
        rows.append((one.metadata.name, modes, *told, _since(one.metadata.creation_timestamp)))
    _table(("NAME", "ACCESSMODE", "DESCRIPTION", "OWNER", "AGE"), rows)


async def _jobs(session: Session) -> list[TrainingJob]:
    listing = await session.client.list(TRAINING_JOBS, session.scope(TRAINING_JOBS))
    found = [job for job in listing.items if OF_LABEL not in job.metadata.labels]
    return sorted(found, key=lambda job: (job.metadata.namespace, job.metadata.name))


async def _pods(session: Session, job: str = "") -> dict[tuple[str, str], list[Pod]]:
    chosen = f"{JOB_LABEL}={job}" if job else JOB_LABEL
    listing = await session.client.list(PODS, session.scope(PODS), label_selector=chosen)
    found: dict[tuple[str, str], list[Pod]] = {}
    for pod in sorted(listing.items, key=lambda p: p.metadata.name):
        meta = pod.metadata
        found.setdefault((meta.namespace, meta.labels[JOB_LABEL]), []).append(pod)
    return found


def _of(job: TrainingJob, pods: Mapping[tuple[str, str], list[Pod]]) -> list[Pod]:
    return pods.get((job.metadata.namespace, job.metadata.name), [])


def _type(job: TrainingJob) -> str:
    return job.metadata.labels.get(TYPE_LABEL) or f"{job.spec.framework}job"


def _status(job: TrainingJob) -> str:
    return _WORDS.get(job.status.phase, job.status.phase.upper())


def _asked(job: TrainingJob) -> int:
    return sum(gpus(role) * role.replicas for role in job.spec.roles)


def _duration(job: TrainingJob) -> str:
    start, end = job.status.start_time, job.status.completion_time
    if start is None:
        return "0s"
    until = timestamp.parse(end) if end else time.time()
    return duration.show(max(0.0, until - timestamp.parse(start)))


def _age(pod: Pod) -> str:
    return _since(pod.metadata.creation_timestamp)


def _since(moment: str | None) -> str:
    return duration.show(max(0.0, time.time() - timestamp.parse(moment))) if moment else _NONE


def _tree(job: TrainingJob, pods: Mapping[tuple[str, str], list[Pod]]) -> Json:
    """Return a job as ``arena get -o json`` tells it."""
    instances = [
        {
            "name": pod.metadata.name,
            "status": pod.status.phase,
            "node": pod.spec.node_name,
            "age": _age(pod),
        }
        for pod in _of(job, pods)
    ]
    return {
        "name": job.metadata.name,
        "namespace": job.metadata.namespace,
        "status": _status(job),
        "trainer": _type(job),
        "duration": _duration(job),
        "priority": job.spec.priority_class_name or _NONE,
        "requestGPUs": _asked(job),
        "creationTimestamp": job.metadata.creation_timestamp,
        "conditions": to_builtins(job.status).get("conditions", []),
        "instances": instances,
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())
