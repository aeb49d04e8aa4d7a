"""What is told right after ``submit``: what was sent and yet cannot start as things are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lockstep.api.core import NODES, PRIORITY_CLASSES
from lockstep.api.names import API_VERSION, ARRAY_LABEL
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.resource import Resource
from lockstep.api.topology import TOPOLOGIES
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json, to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.fitting import too_large
from lockstep.cli.output import note
from lockstep.cli.queue_guard import by_name, did_you_mean
from lockstep.cli.room import surely_fits
from lockstep.kube.errors import Forbidden, NotFound
from lockstep.kube.silent_parts import CARRY, warnings

DEFAULT_QUEUE = "default"
GROUND: tuple[Resource[Any], ...] = (NODES, QUEUES, TOPOLOGIES, PRIORITY_CLASSES, NODE_POLICIES)
"""What decides whether a job can start at all; not what runs now."""


async def tell_doubts(session: Session, objects: Sequence[Json]) -> None:
    """Warn, on standard error, of what waits for something that is not there."""
    ours = [obj for obj in objects if obj.get("apiVersion") == API_VERSION]
    jobs = [obj for obj in ours if obj["kind"] in ("TrainingJob", "Gang")]
    if not jobs and not any(obj["kind"] == "Queue" for obj in ours):
        return
    for warning in await warnings(session.client, CARRY):
        note(f"warning: {warning}")
    try:
        queues = await by_name(session)
        for obj in ours:
            for doubt in _about_queues(obj, queues):
                note(f"warning: {doubt}")
        for obj in jobs:
            for name in await _missing(session, obj):
                note(
                    f"warning: job {name}, which {obj['metadata']['name']} waits for, is not there"
                )
        for doubt in await _too_large(session, jobs):
            note(f"warning: {doubt}")
        placeable = [obj for obj in jobs if _has_queue(obj, queues)]
        for name, reason in await _never(session, placeable, queues):
            note(f"warning: {name} cannot start on this cluster as it is: {reason}")
    except (NotFound, Forbidden):
        return  # who may submit need not be allowed to see what others have


def _about_queues(obj: Json, queues: Mapping[str, Queue]) -> Iterator[str]:
    name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
    if obj["kind"] == "Queue":
        above = spec.get("parent")
        if above and above not in queues:
            yield (
                f"the parent {above} of queue {name} does not exist"
                f"{did_you_mean(above, queues)}; until it does, {name} is a top queue"
            )
    elif not _has_queue(obj, queues) and obj["kind"] in ("TrainingJob", "Gang"):
        queue = spec["queue"]
        yield (
            f"queue {queue} does not exist{did_you_mean(queue, queues)}; the job waits until it "
            f"does: `lockstep queue create {queue}`"
        )


async def _missing(session: Session, obj: Json) -> list[str]:
    """Return the jobs that a job comes after and that are not there."""
    namespace, found = obj["metadata"].get("namespace") or session.namespace, []
    for name in (obj.get("spec") or {}).get("after") or ():
        try:
            await session.client.get(TRAINING_JOBS, name, namespace)
        except NotFound:
            array = f"{ARRAY_LABEL}={name}"
            jobs = await session.client.list(TRAINING_JOBS, namespace, label_selector=array)
            if not jobs.items:
                found.append(name)
    return found


async def _too_large(session: Session, jobs: Sequence[Json]) -> list[str]:
    """Return what is to be said of jobs whose model does not fit the cards."""
    stated = [one for one in jobs if "parallelism" in (one.get("spec") or {})]
    if not stated:
        return []
    nodes = (await session.client.list(NODES)).items
    told = ((one["metadata"].get("name", ""), too_large(one, nodes)) for one in stated)
    return [f"{name}: {words}" for name, words in told if words]


def _has_queue(obj: Json, queues: Mapping[str, Queue]) -> bool:
    queue = (obj.get("spec") or {}).get("queue") or DEFAULT_QUEUE
    return not queues or queue in queues or queue == DEFAULT_QUEUE


async def _never(
    session: Session, jobs: Sequence[Json], queues: Mapping[str, Queue]
) -> list[tuple[str, str]]:
    """Return the jobs that would not start on the cluster even if it were empty, and why."""
    jobs = [obj for obj in jobs if not (obj.get("spec") or {}).get("suspend")]
    if not jobs:
        return []
    nodes = (await session.client.list(NODES)).items
    jobs = [obj for obj in jobs if not surely_fits(obj, nodes, queues)]
    if not jobs or not nodes:
        return []  # of a cluster without nodes nothing is said
    # The scheduler's arrays take longer to load than the rest of submit.
    from lockstep.cli.whatif import never_starts

    listings = [await session.client.list(res) for res in GROUND]
    ground = [
        {**to_builtins(view), "apiVersion": res.api_version, "kind": res.kind}
        for res, listing in zip(GROUND, listings, strict=True)
        for view in listing.items
    ]
    return never_starts(ground, jobs, session.namespace)
