"""The options of ``lockstep queue create`` and ``update``, and the spec that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from lockstep.cli import quantities
from lockstep.cli.app import AtLeast
from lockstep.cli.failure import usage

METAVAR = "RESOURCE=AMOUNT"
TAKEN_OUT = "none"
"""An amount in ``queue update`` that takes the resource out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What a queue may have."""

    parent: Annotated[str | None, "Queue that it is part of; '' makes it a top queue."] = None
    weight: Annotated[
        float | None,
        AtLeast(0),
        "Share of what is left over, against its siblings; 1 by default. With 0 it gets "
        "only what is guaranteed to it and what no sibling with a weight waits for.",
    ] = None
    guaranteed: Annotated[
        list[str] | None, METAVAR, "What it always gets back: gpu=8; may be repeated."
    ] = None
    limit: Annotated[
        list[str] | None,
        METAVAR,
        "What it never exceeds: gpu=8, cpu=64, nvidia.com/gpu/MODEL=4; may be repeated.",
    ] = None
    borrowing_limit: Annotated[
        list[str] | None, METAVAR, "The most that it uses beyond what is guaranteed."
    ] = None
    lending: Annotated[
        Literal["Always", "Never"] | None,
        "Whether others may use what is guaranteed while it is idle.",
    ] = None
    lending_limit: Annotated[
        list[str] | None, METAVAR, "The most of what is guaranteed that others may use."
    ] = None
    preemption: Annotated[
        Literal["LowerPriority", "Never"] | None,
        "Whether jobs take the place of less important ones of the queue.",
    ] = None
    allow: Annotated[
        list[str] | None,
        "WHO",
        "Who may use it beside its team: namespace:NAME, labels:KEY=VALUE, user:NAME or "
        "group:NAME; may be repeated; `none` lets in its team alone, '' lifts it.",
    ] = None
    hourly_budget: Annotated[
        float | None, AtLeast(0), "What the nodes that pools get for its jobs may cost an hour."
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
        spec["lending"] = shares.lending
    if shares.preemption is not None:
        spec["preemption"] = shares.preemption
    if shares.allow is not None:
        with usage("--allow"):
            spec["allowed"] = _allowed(shares.allow)
    if shares.hourly_budget is not None:
        spec["hourlyBudget"] = shares.hourly_budget
    return spec


def _allowed(given: list[str]) -> dict[str, Any] | None:
    """Return who is named; None where the field is to go."""
    if given == [""]:
        return None
    labels: dict[str, str] = {}
    lists: dict[str, list[str]] = {"namespaces": [], "users": [], "groups": []}
    for text in given if given != [TAKEN_OUT] else ():
        kind, _, name = text.partition(":")
        if kind == "labels" and name.partition("=")[0] and "=" in name:
            key, _, labels[key] = name.partition("=")
        elif f"{kind}s" in lists and name:
            lists[f"{kind}s"].append(name)
        else:
            raise ValueError(
                f"{text!r} names none; write namespace:NAME, labels:KEY=VALUE, user:NAME or "
                "group:NAME"
            )
    return {**lists, **({"namespaceSelector": {"matchLabels": labels}} if labels else {})}


def in_place_of(change: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a merge patch of a spec whose ``allowed`` takes the place of that in *before*.

    A merge alone would keep the labels of namespaces that were named before.
    """
    allowed = change.get("allowed")
    if allowed is None:
        return dict(change)
    there = ((before.get("allowed") or {}).get("namespaceSelector")) or {}
    if "namespaceSelector" not in allowed:
        selector = None
    else:
        gone = dict.fromkeys(there.get("matchLabels") or {})
        labels = {**gone, **allowed["namespaceSelector"]["matchLabels"]}
        selector = {"matchLabels": labels, "matchExpressions": None}
    return {**change, "allowed": {**allowed, "namespaceSelector": selector}}


def merged(spec: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec as it is after a merge patch with what the options state."""
    found = dict(spec)
    for field, value in change.items():
        if isinstance(value, dict) and field != "allowed":
            both = {**(spec.get(field) or {}), **value}
            found[field] = {name: amount for name, amount in both.items() if amount is not None}
        else:
            found[field] = value
    return {field: value for field, value in found.items() if value is not None}


def _amounts(given: list[str]) -> dict[str, str | None]:
    kept = [pair for pair in given if pair.partition("=")[2] != TAKEN_OUT]
    gone = [pair.partition("=")[0] for pair in given if pair not in kept]
    return {**quantities.amounts(kept), **{quantities.SHORT.get(n, n): None for n in gone}}
