"""What ``diagnose JOB --collect DIR`` gets: traces and stacks of ranks, logs, the objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec

from lockstep.api.core import Pod
from lockstep.api.diagnosis import Diagnosis
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.rank_evidence import RankSeen
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.log_streams import Request, pods_of
from lockstep.cli.output import Format, encode
from lockstep.cli.remote import unpacked
from lockstep.health.core.hang import verdict
from lockstep.kube.errors import ApiError, Forbidden, NotFound

COMMAND = ("lockstep-run", "--collect")
AT_ONCE = 16
"""Pods that are asked at the same time."""
LONGEST_LOG = 16 << 20


async def collect(session: Session, name: str, folder: Path) -> tuple[TrainingJob, list[str]]:
    """Fill *folder* with what a job's pods and nodes tell; return the job and what is missing.

    ``ranks/``, ``traces/`` and ``stacks/`` have a file a rank, ``logs/`` one a pod; ``job.json``
    and ``nodes.json`` are the objects.

    Raises:
        ApiError: when there is no such job, or the server cannot be used.
    """
    job = await session.client.get(TRAINING_JOBS, name, session.namespace)
    pods = await pods_of(session, Request(name))
    if not pods:
        raise CommandFailed(f"job {name} has no pods now", f"`lockstep explain {name}` says why")
    for one in ("ranks", "traces", "stacks", "logs"):
        (folder / one).mkdir(parents=True, exist_ok=True)
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(pod: Pod) -> list[str]:
        async with slots:
            return await _of_pod(session, job, pod, folder)

    missing = [words for some in await asyncio.gather(*map(ask, pods)) for words in some]
    missing += await _nodes(session, {pod.spec.node_name for pod in pods} - {""}, folder)
    (folder / "job.json").write_text(encode(_builtins(job), Format.JSON))
    return job, missing


async def _of_pod(session: Session, job: TrainingJob, pod: Pod, folder: Path) -> list[str]:
    name, missing = pod.metadata.name, []
    container = pod.spec.containers[0].name if pod.spec.containers else ""
    if pod.status.phase == "Running" and not job.spec.simulated:
        try:
            why = await unpacked(session, name, container, COMMAND, folder)
        except (CommandFailed, ApiError, OSError) as error:
            why = str(error)
        missing += [f"traces and stacks of pod {name}: {why}"] if why else []
    try:
        size = 0
        with (folder / "logs" / f"{name}.log").open("wb") as file:
            async for chunk in session.client.logs(session.namespace, name, container=container):
                file.write(chunk[: LONGEST_LOG - size])
                size += len(chunk)
                if size >= LONGEST_LOG:
                    break
    except ApiError as error:
        missing.append(f"the log of pod {name}: {error}")
    return missing


async def _nodes(session: Session, names: Iterable[str], folder: Path) -> list[str]:
    found, missing = [], []
    for name in sorted(names):
        try:
            found.append(_builtins(await session.client.get(NODE_HEALTHS, name)))
        except NotFound:
            continue
        except Forbidden as error:
            missing.append(f"the health of node {name}: {error}")
    (folder / "nodes.json").write_text(encode(found, Format.JSON))
    return missing


def judged(job: TrainingJob, folder: Path, said: Diagnosis) -> Diagnosis:
    """Return the surest of what the logs *said*, controllers found, and ranks that hang tell."""
    found = [said]
    if job.status.diagnosis is not None:
        found.append(job.status.diagnosis)
    if any(one.type == "Hanging" and one.status == "True" for one in job.status.conditions):
        files = sorted((folder / "ranks").iterdir())
        told = [msgspec.json.decode(one.read_bytes(), type=RankSeen) for one in files]
        found.append(verdict({one.rank: one for one in told}))
    return max(found, key=lambda one: one.confidence)


def _builtins(one: object) -> object:
    from lockstep.api.wire import to_builtins

    return to_builtins(one)
