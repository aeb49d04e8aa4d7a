"""``python -m bench fgd --nodes FILE --pods FILE``: a cluster filled pod by pod from lists."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lockstep.cli.app import App
from lockstep.cli.failure import BadInput, usage
from lockstep.cli.options import Output
from lockstep.cli.output import Format, encode, print_lines, print_table, structured

if TYPE_CHECKING:
    from bench.fgd.fill import Outcome
    from bench.fgd.one_list import Wanted


@dataclass(frozen=True, slots=True)
class Protocol:
    """What fills the cluster, in which order and by which policy."""

    nodes: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV: sn,cpu_milli,memory_mib,gpu,model.")
    ]
    pods: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="CSV: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec].",
        ),
    ]
    seed: Annotated[int | None, typer.Option(help="Draw the order of arrivals from this.")] = None
    inflate: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=100, help="Demand over the cluster's GPUs, with --seed.  [default: 1.3]"
        ),
    ] = None
    arrivals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV with the order itself: arrival,pod.")
    ] = None
    policy: Annotated[
        str | None,
        typer.Option(
            help="lockstep, fgd, best-fit, dot-product, random, or scheduler: its decisions "
            "as a whole.  [default: lockstep]"
        ),
    ] = None

    @property
    def wanted(self) -> Wanted:
        """Return it as the simulator takes it."""
        from bench.fgd.catalog import DEFAULT, policy_named
        from bench.fgd.one_list import Wanted

        with usage("--policy"):
            policy = policy_named(self.policy or DEFAULT)
        with usage("--seed, --arrivals"):
            return Wanted(self.nodes, self.pods, policy, self.seed, self.inflate, self.arrivals)


app = App(add_completion=False)


@app.command()
def fgd(
    *,
    protocol: Protocol,
    placements: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write where each arrival went: arrival,pod,node,gpus."),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Fill a cluster pod by pod until more GPUs have been asked for than there are.

    The protocol of "Beware of Fragmentation" (USENIX ATC 2023): pods come one by one, each is
    placed at once or dropped, and none leaves. What counts is how much of the GPUs is allocated.

    \b
    Examples:
      python -m bench fgd --nodes nodes.csv --pods pods.csv --seed 42 -o json
      python -m bench fgd --nodes nodes.csv --pods pods.csv --arrivals order.csv --policy fgd
    """
    started = time.perf_counter()
    from bench.fgd.lists import BadList, write_placements
    from bench.fgd.one_list import run

    wanted = protocol.wanted
    try:
        outcome = run(wanted, _progress if sys.stderr.isatty() else None)
        if placements is not None:
            write_placements(placements, outcome.placements)
    except BadList as error:
        raise BadInput(str(error)) from None
    _print(wanted, outcome, time.perf_counter() - started, output)


def _progress(demand: float) -> None:
    print(f"\rasked for: {demand:5.1f} % of the GPUs", end="", file=sys.stderr, flush=True)


def _print(wanted: Wanted, outcome: Outcome, seconds: float, output: Format) -> None:
    if sys.stderr.isatty():
        print(f"\r{'':<40}\r", end="", file=sys.stderr, flush=True)
    if structured(output):
        print(encode(_figures(wanted, outcome, seconds), output), end="", flush=True)
        return
    dropped = outcome.dropped.total()
    drop = outcome.first_drop_at
    lines = [
        f"policy      {wanted.policy}",
        f"asked for   {outcome.demand:.2f} % of the GPUs, by {outcome.pods} pods",
        *(
            f"allocated   {share:.2f} % of the GPUs when {mark} % had been asked for"
            for mark, share in outcome.allocation.items()
        ),
        f"allocated   {outcome.share:.2f} % of the GPUs in the end",
        f"dropped     {dropped} pods"
        + ("" if drop is None else f", the first when {drop:.2f} % had been asked for"),
        f"took        {seconds:.2f} s",
    ]
    print_lines(lines)
    if dropped:
        from lockstep.cli.views.table import Column, table

        print_lines([""])
        rows = [(name, str(count)) for name, count in sorted(outcome.dropped.items())]
        print_table(table(["Class", Column("Dropped", number=True)], rows))


def _figures(wanted: Wanted, outcome: Outcome, seconds: float) -> dict[str, Any]:
    drop = outcome.first_drop_at
    return {
        "policy": wanted.policy,
        "seed": wanted.seed,
        "allocation": {mark: round(share, 4) for mark, share in outcome.allocation.items()},
        "seconds": round(seconds, 3),
        "first_drop_at": None if drop is None else round(drop, 4),
        "dropped": dict(sorted(outcome.dropped.items())),
        "pods": outcome.pods,
        "placed": outcome.pods - outcome.dropped.total(),
        "asked": round(outcome.demand, 4),
        "allocated": round(outcome.share, 4),
        "capacity_milli": outcome.capacity,
    }


def main(arguments: Sequence[str]) -> None:
    """Run one list as the arguments of a command line say; end the process."""
    try:
        app(list(arguments), prog_name="python -m bench fgd")
    except BadInput as failure:
        print(f"error: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)
