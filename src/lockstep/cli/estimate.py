"""``estimate``: how much memory a training step needs on each GPU."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from lockstep.api import quantity
from lockstep.cli.failure import BadInput
from lockstep.cli.output import note, print_table
from lockstep.cli.views.table import Column, table
from lockstep.insight.memory import formulas
from lockstep.insight.memory.formulas import GIB, Memory, Plan

app = typer.Typer(rich_markup_mode=None)


class Precision(StrEnum):
    """In which numbers it is computed."""

    FP32 = "fp32"
    MIXED = "mixed"
    BF16 = "bf16"


class Optimizer(StrEnum):
    """What updates the weights."""

    ADAM = "adam"
    ADAM8BIT = "adam8bit"
    SGD = "sgd"
    MOMENTUM = "momentum"
    ADAFACTOR = "adafactor"


class Recompute(StrEnum):
    """Which activations are computed again in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Printed(StrEnum):
    """How it is printed."""

    TABLE = "table"
    JSON = "json"


@app.command()
def estimate(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="A training script to trace: -- python train.py ..."
        ),
    ] = None,
    *,
    params: Annotated[
        float, typer.Option(help="Parameters of the whole model, such as 7e9.")
    ] = 0.0,
    layers: Annotated[int, typer.Option(help="Layers; a usual number by default.")] = 0,
    hidden: Annotated[int, typer.Option(help="Width; a usual one by default.")] = 0,
    heads: Annotated[int, typer.Option(help="Attention heads; one for each 128 of width.")] = 0,
    vocab: Annotated[int, typer.Option(help="Words; 32000 by default.")] = 0,
    sequence: Annotated[int, typer.Option(help="Tokens of a sample.")] = 2048,
    batch: Annotated[int, typer.Option(help="Samples of a micro-batch on one GPU.")] = 1,
    precision: Annotated[Precision, typer.Option(help="Numbers.")] = Precision.MIXED,
    optimizer: Annotated[Optimizer, typer.Option(help="Optimizer.")] = Optimizer.ADAM,
    recompute: Annotated[
        Recompute, typer.Option(help="Which activations are computed again.")
    ] = Recompute.NONE,
    flash: Annotated[bool, typer.Option(help="Attention without stored scores.")] = True,
    zero: Annotated[int, typer.Option(help="ZeRO stage, 0 to 3; FSDP is 3.")] = 0,
    data: Annotated[int, typer.Option(help="Data-parallel ranks.")] = 1,
    tensor: Annotated[int, typer.Option(help="Tensor-parallel ranks.")] = 1,
    pipeline: Annotated[int, typer.Option(help="Pipeline stages.")] = 1,
    context: Annotated[int, typer.Option(help="Context-parallel ranks.")] = 1,
    sequence_parallel: Annotated[
        bool, typer.Option("--sequence-parallel", help="Split what tensor ranks would repeat.")
    ] = False,
    card: Annotated[str, typer.Option(help="Memory of a GPU, such as 80Gi: does it fit?")] = "",
    output: Annotated[
        Printed, typer.Option("--output", "-o", help="How to print it.")
    ] = Printed.TABLE,
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
        if params:
            raise BadInput("--params: given beside a command; a script has its own parameters")
        from lockstep.cli import tracing

        tracing.show(tracing.trace(command, data), limit, as_json=output is Printed.JSON)
        return
    if not params:
        raise BadInput("--params: not given; such as 7e9, or a script behind --")
    plan = Plan(
        params=params,
        layers=layers,
        hidden=hidden,
        heads=heads,
        vocab=vocab,
        sequence=sequence,
        batch=batch,
        precision=precision.value,
        optimizer=optimizer.value,
        recompute=recompute.value,
        flash=flash,
        zero=zero,
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        sequence_parallel=sequence_parallel,
    )
    try:
        memory = formulas.estimate(plan)
    except ValueError as error:
        raise BadInput(str(error)) from None
    remedies = formulas.remedies(plan, limit) if limit and memory.most > limit else []
    if output is Printed.JSON:
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
            f"taken for granted: {full.layers} layers, width {full.hidden}, {full.heads} heads, "
            f"{full.vocab} words; options of these names say otherwise"
        )


def _verdict(memory: Memory, limit: int, remedies: Remedies) -> None:
    if not limit:
        return
    if memory.most <= limit:
        note(f"fits {limit / GIB:.0f} GiB")
    elif memory.likely <= limit:
        note(f"may not fit {limit / GIB:.0f} GiB: only without much fragmentation")
    else:
        note(f"does not fit {limit / GIB:.0f} GiB")
    for words, other in remedies:
        note(f"would fit: {words} (at most {other.most / GIB:.1f} GiB)")
