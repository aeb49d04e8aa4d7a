"""The options of ``lockstep simulate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from lockstep.cli.app import AtLeast
from lockstep.cli.failure import usage

if TYPE_CHECKING:
    from lockstep.api.gang import Strategy
    from lockstep.api.queue import DefragmentationPolicy
    from lockstep.sim.engine.options import Options
    from lockstep.sim.input.faults import Faults


STRATEGIES: Final[dict[str, Strategy]] = {
    "binpack": "Binpack",
    "spread": "Spread",
    "fragmentation": "Fragmentation",
}
NODE_REPAIR: Final = 2.0
SPOT_MTBF: Final = 24.0
SPOT_RETURN: Final = 1.0
"""Hours, where nothing else is given."""


def _hours(what: str) -> Any:
    return typer.Option(min=1e-6, metavar="HOURS", help=what)


@dataclass(frozen=True, slots=True)
class Input:
    """What is simulated."""

    cluster: Annotated[
        str | None,
        "FILE|SPEC",
        "Nodes, queues and the like as YAML or JSON (a snapshot is), or 64x8,...",
    ] = None
    jobs: Annotated[Path | None, "FILE", "TrainingJob and Gang objects."] = None
    policy: Annotated[
        Literal["binpack", "spread", "fragmentation"] | None, "Strategy of the jobs that name none."
    ] = None

    @property
    def strategy(self) -> Strategy | None:
        """Return the strategy of the jobs that name none, where one is given."""
        return None if self.policy is None else STRATEGIES[self.policy]


@dataclass(frozen=True, slots=True)
class Clock:
    """How time goes by."""

    seed: Annotated[int, "Seed of everything random."] = 0
    until: Annotated[float | None, "SECONDS", AtLeast(0), "Stop at this time."] = None
    period: Annotated[float, "SECONDS", AtLeast(0), "Decide this often; 0: after every event."] = (
        0.0
    )


@dataclass(frozen=True, slots=True)
class Breakage:
    """What goes wrong, and what jobs lose by it."""

    node_mtbf: Annotated[float | None, _hours("Mean time between failures of a node.")] = None
    node_repair: Annotated[
        float | None, _hours(f"Mean time until it is back; {NODE_REPAIR:g} if left out.")
    ] = None
    gpu_mtbf: Annotated[
        float | None, _hours("Mean time of a GPU's work after which its job breaks by itself.")
    ] = None
    spot: Annotated[str | None, "SELECTOR", "Labels of nodes that are reclaimed."] = None
    spot_mtbf: Annotated[
        float | None,
        _hours(f"Mean time between two reclaims of a spot node; {SPOT_MTBF:g} if left out."),
    ] = None
    spot_return: Annotated[
        float | None, _hours(f"Mean time until it is back; {SPOT_RETURN:g} if left out.")
    ] = None
    restart_cost: Annotated[float, "SECONDS", AtLeast(0), "From a restart to new progress."] = 120.0
    checkpoint_interval: Annotated[
        float, "SECONDS", AtLeast(0), "Between two checkpoints; 0: all kept."
    ] = 1800.0

    @property
    def faults(self) -> Faults:
        """Return it as the simulator takes it; what is left out never happens."""
        from lockstep.sim.input.faults import Faults

        if self.node_mtbf is None:
            _without("--node-mtbf HOURS, how often nodes fail", {"--node-repair": self.node_repair})
        if self.spot is None:
            of_spot = {"--spot-mtbf": self.spot_mtbf, "--spot-return": self.spot_return}
            _without("--spot SELECTOR, the labels of the nodes that are reclaimed", of_spot)
        return Faults(
            node_mtbf=inf if self.node_mtbf is None else self.node_mtbf,
            node_repair=self.node_repair or NODE_REPAIR,
            spot_mtbf=self.spot_mtbf or SPOT_MTBF,
            spot_return=self.spot_return or SPOT_RETURN,
            spot=_selector(self.spot),
            gpu_mtbf=inf if self.gpu_mtbf is None else self.gpu_mtbf,
            restart_cost=self.restart_cost,
            checkpoint_interval=self.checkpoint_interval,
        )


@dataclass(frozen=True, slots=True)
class Showing:
    """How the outcome is told."""

    chart: Annotated[Path | None, "FILE", "Draw it: a .svg or a .html file."] = None
    output: Annotated[Literal["table", "json"], "--output", "-o", "How to print it."] = "table"


def options(clock: Clock, breakage: Breakage, defrag: str | None) -> Options:
    """Return how the simulation is to run."""
    from lockstep.sim.engine.options import Options

    until = inf if clock.until is None else clock.until
    return Options(clock.seed, until, clock.period, breakage.faults, _defragmentation(defrag))


def _without(needed: str, given: Mapping[str, float | None]) -> None:
    """Refuse what would do nothing without the option that is *needed*."""
    for flag, value in given.items():
        if value is not None:
            with usage(flag):
                raise ValueError(f"it does nothing by itself; add {needed}")


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
