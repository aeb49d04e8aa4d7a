"""``explain --layout``: which ranks are on which node, and what that costs."""

from __future__ import annotations

from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.state import read_cluster
from lockstep.cli.views.layout import layout_lines
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.offline import inquire
from lockstep.scheduler.core.picture import picture, places_of
from lockstep.scheduler.core.units import Unit, UnitKey


async def layout_of(session: Session, name: str) -> list[str]:
    """Return the drawing of the layout that a gang has, or would have if it were placed now.

    Raises:
        CommandFailed: when there is no such gang, or it has no ranks to be laid out.
    """
    cluster = await read_cluster(session.client)
    unit = cluster.units.get(UnitKey("Gang", session.namespace, name))
    if unit is None:
        raise CommandFailed(
            f"there is no gang {name!r} in namespace {session.namespace}",
            "a job that has ended, or is suspended, has none; -n chooses the namespace",
        )
    if unit.parallelism is None:
        raise CommandFailed(
            f"{name} does not state how its ranks are split, so any layout is as good",
            "spec.parallelism of the TrainingJob says it: tensor, pipeline, context, expert, data",
        )
    return _drawn(cluster, unit)


def _drawn(cluster: Cluster, unit: Unit) -> list[str]:
    places, placed = places_of(unit.members), True
    if not unit.whole:
        answer = inquire(cluster, unit.key.namespace, unit.key.name)
        if answer.placement is not None:
            placed = False
            places |= {a.member.key: a.spot.node for a in answer.placement.assignments}
    drawn = picture(cluster, unit, places)
    if drawn is None:
        raise CommandFailed(
            f"{unit.key.name} has no place for all its ranks now",
            f"lockstep explain {unit.key.name} says why",
        )
    return layout_lines(drawn, placed=placed)
