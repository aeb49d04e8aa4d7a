"""``simulate``: the scheduler's own decisions over a cluster and jobs that are only described."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lockstep.api.names import API_VERSION
from lockstep.cli.failure import CommandFailed
from lockstep.cli.load import check, documents
from lockstep.cli.simulate_fgd import fgd
from lockstep.cli.usage import usage
from lockstep.cli.views.simulation import summary

if TYPE_CHECKING:
    from lockstep.api.gang import Strategy
    from lockstep.api.queue import DefragmentationPolicy
    from lockstep.sim.engine import Options
    from lockstep.sim.record import Result
    from lockstep.sim.workload import Workload
    from lockstep.sim.world import World

app = typer.Typer(rich_markup_mode=None)
app.command()(fgd)

Json = dict[str, Any]
PROGRESS_EVERY = 0.5


class Output(StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
    JSON = "json"


class Policy(StrEnum):
    """How jobs that name no strategy choose their nodes."""

    BINPACK = "binpack"
    SPREAD = "spread"
    FRAGMENTATION = "fragmentation"


STRATEGIES: Final[dict[Policy, Strategy]] = {
    Policy.BINPACK: "Binpack",
    Policy.SPREAD: "Spread",
    Policy.FRAGMENTATION: "Fragmentation",
}


def _hours(what: str) -> Any:
    return typer.Option(min=1e-6, metavar="HOURS", help=what)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run and what it showed."""

    result: Result
    figures: Json


@app.callback(invoke_without_command=True)
def simulate(
    ctx: typer.Context,
    *,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|SPEC",
            help="Nodes, queues and the like as YAML or JSON (a snapshot is), or 64x8,...",
        ),
    ] = None,
    jobs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TrainingJob and Gang objects.")
    ] = None,
    policy: Annotated[
        Policy | None, typer.Option(help="Strategy of the jobs that name none.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    until: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop at this time.")
    ] = None,
    period: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Decide this often; 0: after every event."),
    ] = 0.0,
    node_mtbf: Annotated[float | None, _hours("Mean time between failures of a node.")] = None,
    node_repair: Annotated[float, _hours("Mean time until it is back.")] = 2.0,
    gpu_mtbf: Annotated[
        float | None, _hours("Mean time of a GPU's work after which its job breaks by itself.")
    ] = None,
    spot: Annotated[
        str | None, typer.Option(metavar="SELECTOR", help="Labels of nodes that are reclaimed.")
    ] = None,
    spot_mtbf: Annotated[float, _hours("Mean time between two reclaims of a spot node.")] = 24.0,
    spot_return: Annotated[float, _hours("Mean time until it is back.")] = 1.0,
    restart_cost: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="From a restart to new progress.")
    ] = 120.0,
    checkpoint_interval: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Between two checkpoints; 0: all kept.")
    ] = 1800.0,
    defrag: Annotated[
        str | None,
        typer.Option(
            metavar="AFTER[,MAX-PRICE[,COOL-DOWN]]",
            help="Move elastic and checkpointed jobs for one that waits so long (10m,8h,1h).",
        ),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: a .svg or a .html file.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = (
        Output.TABLE
    ),
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
        if cluster is None or jobs is None:
            raise ValueError("both are needed: --cluster FILE|SPEC and --jobs FILE")
    with usage("--chart"):
        if chart is not None and chart.suffix not in (".svg", ".html"):
            raise ValueError(f"{chart} must end with .svg or .html")
    from lockstep.sim.faults import Faults

    faults = Faults(
        node_mtbf=inf if node_mtbf is None else node_mtbf,
        node_repair=node_repair,
        spot_mtbf=spot_mtbf,
        spot_return=spot_return,
        spot=_selector(spot),
        gpu_mtbf=inf if gpu_mtbf is None else gpu_mtbf,
        restart_cost=restart_cost,
        checkpoint_interval=checkpoint_interval,
    )
    from lockstep.sim.engine import Options

    options = Options(
        seed, inf if until is None else until, period, faults, _defragmentation(defrag)
    )
    outcome = _run(cluster, jobs, policy, options)
    _show(outcome, chart, output)


def _run(cluster: str, jobs: Path, policy: Policy | None, options: Options) -> Outcome:
    from lockstep.sim.communication import compared
    from lockstep.sim.engine import Simulation
    from lockstep.sim.figures import figures
    from lockstep.sim.unsettled import Unsettled

    world = _world(cluster)
    works = _works(jobs, world, policy)
    simulation = Simulation(world, works, options)
    try:
        with _Progress(len(works)) as progress:
            result = simulation.run(progress)
    except Unsettled as error:
        raise CommandFailed(
            f"the simulation broke off: {error}",
            "this is a defect of the scheduler: please report it with the input",
        ) from None
    result.communication = compared(world, result)
    weights = {queue.metadata.name: queue.spec.weight for queue in world.queues}
    return Outcome(result, figures(result, simulation.cluster.table, weights))


def _show(outcome: Outcome, chart: Path | None, output: Output) -> None:
    from lockstep.sim import chart as charts
    from lockstep.sim.report import pieces

    result, shown = outcome.result, outcome.figures
    if chart is not None:
        drawn = charts.svg(result) if chart.suffix == ".svg" else charts.page(result, shown)
        try:
            chart.write_text(drawn)
        except OSError as error:
            raise CommandFailed(f"--chart {chart}: {error.strerror}", "name another file") from None
    if output is Output.JSON:
        sys.stdout.writelines(pieces(result, shown))
    else:
        print("\n".join(summary(shown, result)))


def _world(cluster: str) -> World:
    from lockstep.nodes.simulated.spec import SpecError, parse
    from lockstep.sim.world import InputError, read_world, world_of

    path = Path(cluster)
    try:
        if path.suffix in (".yaml", ".yml", ".json") and _holds_objects(path):
            return read_world(_objects(path))
        return world_of(parse(cluster))
    except (InputError, SpecError) as error:
        raise CommandFailed(f"--cluster {cluster}: {error}") from None


def _holds_objects(path: Path) -> bool:
    """Tell objects from the node groups of a SPEC: those have no kind."""
    try:
        return "kind" in path.read_text()
    except (OSError, UnicodeDecodeError):
        return True  # reading it as objects says what is wrong


def _works(jobs: Path, world: World, policy: Policy | None) -> list[Workload]:
    from lockstep.sim.workload import read_workloads
    from lockstep.sim.world import InputError

    strategy = None if policy is None else STRATEGIES[policy]
    try:
        works = read_workloads(_objects(jobs), world, strategy)
    except InputError as error:
        raise CommandFailed(f"--jobs {jobs}: {error}") from None
    if not works:
        raise CommandFailed(
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


def _selector(text: str | None) -> Any:
    if text is None:
        return None
    from lockstep.api.selectors import SelectorError, parse_labels

    with usage("--spot"):
        try:
            return parse_labels(text)
        except SelectorError as error:
            raise ValueError(str(error)) from None


def _defragmentation(text: str | None) -> DefragmentationPolicy | None:
    """Return the policy for queues that state none; what is left out is as in a Queue."""
    if text is None:
        return None
    from lockstep.api import duration
    from lockstep.api.queue import DefragmentationPolicy

    with usage("--defrag"):
        parts = text.split(",")
        if len(parts) > 3:
            raise ValueError(f"{text!r} has {len(parts)} parts; write at most three: 10m,8h,1h")
        for part in parts:
            duration.parse(part)
    return DefragmentationPolicy(*parts)


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
