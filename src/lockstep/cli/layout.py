"""``explain --layout``: which ranks are on which node, and what that costs."""

from __future__ import annotations

from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.state import read_cluster
from lockstep.cli.views.layout import layout_lines
from lockstep.scheduler.core.explain.rank_layout import places_of, rank_layout
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.runtime.offline import inquire
from lockstep.scheduler.core.state.cluster import Cluster


async def layout_of(session: Session, name: str) -> list[str]:
    """Return the drawing of the layout that a gang has, or would have if it were placed now.

    Raises:
        CommandFailed: when there is no such gang, or it has no ranks to be laid out.
    """
    cluster = await read_cluster(session.client)
    workload = cluster.workloads.get(WorkloadKey("Gang", session.namespace, name))
    if workload is None:
        raise CommandFailed(
            f"there is no gang {name!r} in namespace {session.namespace}",
            "a job that has ended, or is suspended, has none; -n chooses the namespace",
        )
    if workload.parallelism is None:
        raise CommandFailed(
            f"{name} does not state how its ranks are split, so any layout is as good",
            "spec.parallelism of the TrainingJob says it: tensor, pipeline, context, expert, data",
        )
    return _drawn(cluster, workload)


def _drawn(cluster: Cluster, workload: Workload) -> list[str]:
    places, placed = places_of(workload.members), True
    if not workload.whole:
        answer = inquire(cluster, workload.key.namespace, workload.key.name)
        if answer.placement is not None:
            placed = False
            places |= {a.member.key: a.spot.node for a in answer.placement.assignments}
    drawn = rank_layout(cluster, workload, places)
    if drawn is None:
        raise CommandFailed(
            f"{workload.key.name} has no place for all its ranks now",
            f"lockstep explain {workload.key.name} says why",
        )
    return layout_lines(drawn, placed=placed)
