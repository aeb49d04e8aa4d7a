"""What would become of a job that is not there yet: the simulator, run until it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import InitialCluster
from lockstep.sim.input.jobs import Job
from lockstep.sim.result.job_records import JobRecord
from lockstep.sim.result.record import Result


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a job would start, as far as run times are known, and what that would cost others."""

    starts: float | None
    """Seconds from now; None: not as long as what is there runs."""
    nodes: dict[str, int]
    """How many of its pods would stand on each node."""
    after: tuple[str, ...]
    """Jobs at whose end it would start, when that is not now."""
    preempts: tuple[str, ...]
    """Jobs that would have to give way to it."""
    reason: str
    """Why it waits, when it does."""
    endless: int
    """Running jobs that do not say how long they run, and are taken to run for ever."""


def forecast(
    world: InitialCluster, works: Sequence[Job], wanted: Job, *, now_only: bool = False
) -> Forecast:
    """Return what would become of *wanted* if it came now, behind *works*.

    With *now_only* the future is left out: it starts now, or the reason says why not.
    """
    options = Options(until=0.0) if now_only else Options()
    all_works = sorted([*works, wanted], key=lambda work: work.arrival)
    simulation = Simulation(world, all_works, options, behind=wanted.key)
    result = simulation.run(stop=lambda: simulation.has_started(wanted.key))
    life = next(one for one in result.lives if one.name == wanted.name)
    stays = [stay for stay in result.stays.of(life.number) if stay.end is None]
    nodes: dict[str, int] = {}
    for stay in stays:
        nodes[stay.node] = nodes.get(stay.node, 0) + 1
    endless = sum(one.started is not None and one.runtime is None for one in result.lives)
    return Forecast(
        starts=life.started,
        nodes=nodes,
        after=_ended_then(result, life),
        preempts=tuple(sorted({victim for who, victim in result.evictions if who == wanted.name})),
        reason=life.waiting,
        endless=endless - (life.started is not None and wanted.runtime is None),
    )


def _ended_then(result: Result, life: JobRecord) -> tuple[str, ...]:
    if not life.started:
        return ()
    return tuple(one.name for one in result.lives if one.ended == life.started)
