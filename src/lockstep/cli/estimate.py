"""``estimate``: how much memory a training step needs on each GPU."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from lockstep.api import quantity
from lockstep.cli.app import App
from lockstep.cli.failure import BadInput
from lockstep.cli.output import note, print_table
from lockstep.cli.views.table import Column, table
from lockstep.insight.memory import formulas
from lockstep.insight.memory.formulas import GIB, Memory, Plan

app = App()


@app.command()
def estimate(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="A training script to trace: -- python train.py ..."
        ),
    ] = None,
    *,
    plan: Plan,
    card: Annotated[str, "Memory of a GPU, such as 80Gi: does it fit?"] = "",
    output: Annotated[Literal["table", "json"], "--output", "-o", "How to print it."] = "table",
) -> None:
    """Say how much memory a training step takes on its fullest GPU.

    By formulas for a transformer of --params; or a script of yours is traced for two steps, as one
    rank of --data, on a CPU and without computing anything.

    \b
    Examples:
      lockstep estimate --params 7e9 --optimizer adam --precision mixed
      lockstep estimate --params 7e9 --zero 3 --data 8 --batch 4 --card 80Gi
      lockstep estimate --data 8 --card 80Gi -- python train.py --batch 4
    """
    limit = _bytes(card)
    if command:
        if plan.params:
            raise BadInput(
                f"--params {plan.params:g}: leave it out; the script has its own parameters"
            )
        from lockstep.cli import tracing

        tracing.show(tracing.trace(command, plan.data), limit, as_json=output == "json")
        return
    if not plan.params:
        raise BadInput(
            "--params: not given",
            "write --params 7e9, or name a script behind --: -- python train.py",
        )
    try:
        memory = formulas.estimate(plan)
    except ValueError as error:
        raise BadInput(str(error)) from None
    remedies = formulas.remedies(plan, limit) if limit and memory.most > limit else []
    if output == "json":
        print(json.dumps(_json(memory, limit, remedies), indent=2), flush=True)
    else:
        _table(plan, memory)
        _verdict(memory, limit, remedies)


def _bytes(card: str) -> int:
    if not card:
        return 0
    try:
        found = quantity.to_int(card)
    except ValueError as error:
        raise BadInput(f"--card: {error}") from None
    if found < GIB:
        raise BadInput(f"--card: given {card!r}; must be the memory of a GPU, such as 80Gi")
    return found


Remedies = list[tuple[str, Memory]]


def _json(memory: Memory, limit: int, remedies: Remedies) -> dict[str, object]:
    found: dict[str, object] = {
        "bytes": {name: round(size) for name, size in memory.parts().items()},
        "allocated": round(memory.allocated),
        "likely": round(memory.likely),
        "most": round(memory.most),
    }
    if limit:
        found["card"], found["fits"] = limit, memory.most <= limit
        found["remedies"] = [{"options": w, "most": round(m.most)} for w, m in remedies]
    return found


def _table(plan: Plan, memory: Memory) -> None:
    rows = [(name, f"{size / GIB:.2f}") for name, size in memory.parts().items()]
    rows.append(("likely in use", f"{memory.likely / GIB:.2f}"))
    rows.append(("at most", f"{memory.most / GIB:.2f}"))
    print_table(table(("On the fullest GPU", Column("GiB", number=True)), rows))
    full = formulas.completed(plan)
    if (full.layers, full.hidden, full.heads, full.vocab) != (
        plan.layers,
        plan.hidden,
        plan.heads,
        plan.vocab,
    ):
        note(
            f"assumed: {full.layers} layers, width {full.hidden}, {full.heads} heads, "
            f"{full.vocab} words; set them with --layers, --hidden, --heads and --vocab"
        )


def _verdict(memory: Memory, limit: int, remedies: Remedies) -> None:
    if not limit:
        return
    if memory.most <= limit:
        note(f"it fits a GPU of {limit / GIB:.0f} GiB")
    elif memory.likely <= limit:
        note(f"it may not fit a GPU of {limit / GIB:.0f} GiB: only with little fragmentation")
    else:
        note(f"it does not fit a GPU of {limit / GIB:.0f} GiB")
    for words, other in remedies:
        note(f"it would fit with {words}: at most {other.most / GIB:.1f} GiB")
