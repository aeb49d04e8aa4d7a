"""Which objects the table of each kind is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import EVENTS, NODES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli.views.gangs import gang_table
from lockstep.cli.views.jobs import job_table
from lockstep.cli.views.nodes import node_table
from lockstep.cli.views.pipelines import pipeline_table
from lockstep.cli.views.pods import event_table, pod_table
from lockstep.cli.views.queues import queue_table
from lockstep.cli.views.table import NAMESPACE, Table, natural, table
from lockstep.cli.views.times import ago

Found = Mapping[str, Sequence[Any]]
"""Objects by kind."""


@dataclass(frozen=True, slots=True)
class View:
    """A table of the objects of one kind, and the further kinds that it draws on."""

    build: Callable[[Found, float], Table]
    more: tuple[Resource[Any], ...] = ()


def _jobs(found: Found, now: float) -> Table:
    gangs = {(g.metadata.namespace, g.metadata.name): g for g in found["Gang"]}
    return job_table(found["TrainingJob"], gangs, now)


def _pools(found: Found, now: float) -> Table:
    from lockstep.cli.views.pools import pool_table  # it takes the scheduler's core, and time

    return pool_table(found["NodePool"], now)


VIEWS: dict[str, View] = {
    TRAINING_JOBS.kind: View(_jobs, (GANGS,)),
    GANGS.kind: View(lambda found, now: gang_table(found["Gang"], now)),
    QUEUES.kind: View(lambda found, now: queue_table(found["Queue"], now)),
    NODE_POOLS.kind: View(_pools),
    NODES.kind: View(lambda found, now: node_table(found["Node"], found["Pod"], now), (PODS,)),
    PODS.kind: View(lambda found, now: pod_table(found["Pod"], now)),
    PIPELINE_RUNS.kind: View(lambda found, now: pipeline_table(found["PipelineRun"], now)),
    EVENTS.kind: View(lambda found, now: event_table(found["Event"], now)),
}


def view(res: Resource[Any]) -> View:
    """Return the view of *res*; name and age where nothing else is known."""
    return VIEWS.get(res.kind) or View(lambda found, now: _plain(found[res.kind], now))


def changed(before: Table, after: Table) -> tuple[tuple[str, ...], ...]:
    """Return the rows of *after* that are new or differ, but for their ages."""
    aging = {"Age", "Last seen", "Runtime"}
    kept = [i for i, column in enumerate(after.columns) if column.name not in aging]
    known = {tuple(row[i] for i in kept) for row in before.rows}
    return tuple(row for row in after.rows if tuple(row[i] for i in kept) not in known)


def _plain(objects: Sequence[Any], now: float) -> Table:
    ordered = sorted(objects, key=lambda o: (o.metadata.namespace, natural(o.metadata.name)))
    rows = (
        (o.metadata.namespace, o.metadata.name, ago(o.metadata.creation_timestamp, now))
        for o in ordered
    )
    return table((NAMESPACE, "Name", "Age"), rows)
