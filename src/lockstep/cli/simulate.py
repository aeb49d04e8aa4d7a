"""``simulate``: the scheduler's own decisions over a cluster and jobs that are only described."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lockstep.api.names import API_VERSION
from lockstep.api.wire import Json
from lockstep.cli.app import App
from lockstep.cli.failure import BadInput, CommandFailed, usage
from lockstep.cli.load import check, documents
from lockstep.cli.output import note
from lockstep.cli.simulate_options import Breakage, Clock, Input, Showing, options
from lockstep.cli.views.simulation import summary

if TYPE_CHECKING:
    from lockstep.api.gang import Strategy
    from lockstep.sim.engine.options import Options
    from lockstep.sim.input.initial_cluster import InitialCluster
    from lockstep.sim.input.jobs import Job
    from lockstep.sim.result.record import Result

app = App()

PROGRESS_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run and what it showed."""

    result: Result
    figures: Json


@app.callback(invoke_without_command=True)
def simulate(
    *,
    ctx: typer.Context,
    given: Input,
    clock: Clock,
    breakage: Breakage,
    defrag: Annotated[
        str | None,
        "AFTER[,MAX-PRICE[,COOL-DOWN]]",
        "Move elastic and checkpointed jobs for one that waits so long (10m,8h,1h).",
    ] = None,
    showing: Showing,
) -> None:
    """Run jobs through the scheduler in simulated time, and report what came of it.

    Jobs say when they come and how long they run in the annotations lockstep.dev/arrival and
    lockstep.dev/runtime, in seconds. The decisions are those of the scheduler itself.

    \b
    Examples:
      lockstep simulate --cluster 64x8 --jobs jobs.yaml
      lockstep simulate --cluster snapshot.json --jobs snapshot.json --node-mtbf 2000 -o json
      lockstep simulate --cluster nodes.yaml --jobs jobs.yaml --chart run.html
      lockstep simulate --cluster 64x8 --jobs jobs.yaml --defrag 10m,8h
    """
    if ctx.invoked_subcommand is not None:
        return
    with usage("--cluster, --jobs"):
        if given.cluster is None or given.jobs is None:
            raise ValueError("both are needed: --cluster FILE|SPEC and --jobs FILE")
    with usage("--chart"):
        if showing.chart is not None and showing.chart.suffix not in (".svg", ".html"):
            raise ValueError(f"{showing.chart} must end with .svg or .html")
    wanted = options(clock, breakage, defrag)
    world = _world(given.cluster)
    works = _works(given.jobs, world, given.strategy)
    _show(_run(world, works, wanted), showing)


def _run(world: InitialCluster, works: list[Job], options: Options) -> Outcome:
    from lockstep.scheduler.core.runtime.clock import NotConverged
    from lockstep.sim.engine.simulation import Simulation
    from lockstep.sim.input.unmatched import unmatched
    from lockstep.sim.result.communication import compared
    from lockstep.sim.result.figures import figures

    simulation = Simulation(world, works, options)
    for warning in unmatched(world, simulation.cluster, options.faults):
        note(f"warning: {warning}")
    try:
        with _Progress(len(works)) as progress:
            result = simulation.run(progress)
    except NotConverged as error:
        raise CommandFailed(
            f"the simulation broke off: {error}",
            "this is a defect of the scheduler: please report it with the input",
        ) from None
    result.communication = compared(world, result)
    weights = {queue.metadata.name: queue.spec.weight for queue in world.queues}
    return Outcome(result, figures(result, simulation.cluster.table, weights))


def _show(outcome: Outcome, showing: Showing) -> None:
    from lockstep.sim.result import chart as charts
    from lockstep.sim.result.report import pieces

    result, shown = outcome.result, outcome.figures
    if (chart := showing.chart) is not None:
        drawn = charts.svg(result) if chart.suffix == ".svg" else charts.page(result, shown)
        try:
            chart.write_text(drawn)
        except OSError as error:
            raise BadInput(f"--chart {chart}: {error.strerror}", "name another file") from None
    if showing.output == "json":
        sys.stdout.writelines(pieces(result, shown))
    else:
        print("\n".join(summary(shown, result)))


def _world(cluster: str) -> InitialCluster:
    from lockstep.nodes.simulated.spec import SpecError, parse
    from lockstep.sim.input.initial_cluster import (
        InputError,
        initial_cluster_of,
        read_initial_cluster,
    )

    path = Path(cluster)
    try:
        if path.suffix in (".yaml", ".yml", ".json") and _holds_objects(path):
            return read_initial_cluster(_objects(path))
        return initial_cluster_of(parse(cluster))
    except (InputError, SpecError) as error:
        raise BadInput(f"--cluster {cluster}: {error}") from None


def _holds_objects(path: Path) -> bool:
    """Tell objects from the node groups of a SPEC: those have no kind."""
    try:
        return "kind" in path.read_text()
    except (OSError, UnicodeDecodeError):
        return True  # reading it as objects says what is wrong


def _works(jobs: Path, world: InitialCluster, strategy: Strategy | None) -> list[Job]:
    from lockstep.sim.input.initial_cluster import InputError
    from lockstep.sim.input.jobs import read_jobs

    try:
        works = read_jobs(_objects(jobs), world, strategy)
    except InputError as error:
        raise BadInput(f"--jobs {jobs}: {error}") from None
    if not works:
        raise BadInput(
            f"--jobs {jobs}: holds no TrainingJob and no Gang", "add one; see `lockstep submit -h`"
        )
    return works


def _objects(path: Path) -> list[Json]:
    """Return the objects of a file; those of our own kinds are checked as the server would."""
    found = documents(path)
    for document in found:
        if document.obj["apiVersion"] == API_VERSION:
            check(document)
    return [document.obj for document in found]


class _Progress:
    """A line on standard error that says how far it is, where a person looks."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._shown = time.monotonic()
        self._tty = sys.stderr.isatty()

    def __enter__(self) -> Callable[[float, int, int], None]:
        return self._tell

    def _tell(self, now: float, ended: int, arrived: int) -> None:
        if not self._tty or time.monotonic() - self._shown < PROGRESS_EVERY:
            return
        self._shown = time.monotonic()
        days = now / 86400
        text = f"day {days:.2f}: {ended} of {self._jobs} jobs ended, {arrived - ended} here"
        print(f"\r{text:<70}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._tty:
            print(f"\r{'':<70}\r", end="", file=sys.stderr, flush=True)
