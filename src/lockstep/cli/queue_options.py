"""The options of ``lockstep queue create`` and ``update``, and the spec that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from lockstep.cli import quantities
from lockstep.cli.usage import usage

METAVAR = "RESOURCE=AMOUNT"
TAKEN_OUT = "none"
"""An amount in ``queue update`` that takes the resource out."""


class Lending(StrEnum):
    """Whether others may use what is guaranteed while it is idle."""

    ALWAYS = "Always"
    NEVER = "Never"


class Preemption(StrEnum):
    """Whether gangs take the place of less important ones of the queue."""

    LOWER_PRIORITY = "LowerPriority"
    NEVER = "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What a queue may have."""

    parent: Annotated[
        str | None, typer.Option(help="Queue that it is part of; '' makes it a top queue.")
    ] = None
    weight: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Share of what is left over, against its siblings; 1 by default. With 0 it gets "
            "only what is guaranteed to it and what no sibling with a weight waits for.",
        ),
    ] = None
    guaranteed: Annotated[
        list[str] | None,
        typer.Option(metavar=METAVAR, help="What it always gets back: gpu=8; may be repeated."),
    ] = None
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar=METAVAR,
            help="What it never exceeds: gpu=8, cpu=64, nvidia.com/gpu/MODEL=4; may be repeated.",
        ),
    ] = None
    borrowing_limit: Annotated[
        list[str] | None,
        typer.Option(metavar=METAVAR, help="The most that it uses beyond what is guaranteed."),
    ] = None
    lending: Annotated[
        Lending | None,
        typer.Option(help="Whether others may use what is guaranteed while it is idle."),
    ] = None
    lending_limit: Annotated[
        list[str] | None,
        typer.Option(metavar=METAVAR, help="The most of what is guaranteed that others may use."),
    ] = None
    preemption: Annotated[
        Preemption | None,
        typer.Option(help="Whether jobs take the place of less important ones of the queue."),
    ] = None
    hourly_budget: Annotated[
        float | None,
        typer.Option(min=0, help="What the nodes that pools get for its jobs may cost an hour."),
    ] = None


_AMOUNTS = (
    ("--guaranteed", "guaranteed", "guaranteed"),
    ("--limit", "limit", "limit"),
    ("--borrowing-limit", "borrowing_limit", "borrowingLimit"),
    ("--lending-limit", "lending_limit", "lendingLimit"),
)


def stated(shares: Shares) -> dict[str, Any]:
    """Return the fields of a queue's spec that the options state; None takes one out.

    Raises:
        BadParameter: naming the option, for an amount that is none.
    """
    spec: dict[str, Any] = {}
    if shares.parent is not None:
        spec["parent"] = shares.parent or None
    if shares.weight is not None:
        spec["weight"] = shares.weight
    for option, attribute, field in _AMOUNTS:
        given = getattr(shares, attribute)
        if given:
            with usage(option):
                spec[field] = _amounts(given)
    if shares.lending is not None:
        spec["lending"] = str(shares.lending)
    if shares.preemption is not None:
        spec["preemption"] = str(shares.preemption)
    if shares.hourly_budget is not None:
        spec["hourlyBudget"] = shares.hourly_budget
    return spec


def merged(spec: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec as it is after a merge patch with what the options state."""
    found = dict(spec)
    for field, value in change.items():
        if isinstance(value, dict):
            both = {**(spec.get(field) or {}), **value}
            found[field] = {name: amount for name, amount in both.items() if amount is not None}
        else:
            found[field] = value
    return {field: value for field, value in found.items() if value is not None}


def _amounts(given: list[str]) -> dict[str, str | None]:
    kept = [pair for pair in given if pair.partition("=")[2] != TAKEN_OUT]
    gone = [pair.partition("=")[0] for pair in given if pair not in kept]
    return {**quantities.amounts(kept), **{quantities.SHORT.get(n, n): None for n in gone}}
