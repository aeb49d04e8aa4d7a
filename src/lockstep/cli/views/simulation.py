"""The outcome of a simulation in lines of text."""

from __future__ import annotations

from typing import Any

from lockstep.api import duration
from lockstep.cli.views.table import Column, plain, table
from lockstep.sim.result.record import Result

NAMED = 10
"""Waiting jobs that are named."""


def summary(figures: dict[str, Any], result: Result) -> list[str]:
    """Return what a person wants to know first, then who waited, then who still waits."""
    lines = [
        f"{figures['jobs']} jobs over {duration.show(figures['seconds'])}: {figures['ended']} "
        f"ended, {figures['stillWaiting']} still wait (seed {result.seed})",
        f"allocation     {figures['allocation']:.2f} % of the GPU time, "
        f"{figures['pressedAllocation']:.2f} % while jobs waited",
        f"fragmentation  {figures['fragmentation']:.2f} % of the free GPU time was on nodes "
        "partly in use",
        f"goodput        {figures['goodput']:.2f} % of the time held; "
        f"{figures['lostGpuHours']:.1f} GPU hours done twice",
        f"fairness       {figures['fairness']:.3f} between queues (1 is even)",
        f"disturbances   {figures['preemptions']} preemptions, {figures['restarts']} restarts, "
        f"{figures['nodeFaults']} nodes lost",
        f"moved          {figures['moves']} jobs for {figures['rearrangements']} others, "
        f"{figures['movedGpuHours']:.1f} GPU hours lost by them",
        f"span           {_spans(figures['span'])}",
    ]
    lines += _communication(figures["communicationCost"])
    lines += _bill(figures["bill"])
    for title, field in (("queue", "waitsByQueue"), ("GPUs", "waitsByClass")):
        lines += ["", _waits(title, figures[field])]
    return lines + _waiting(result)


def _bill(bills: dict[str, dict[str, Any]]) -> list[str]:
    """Return what nodes have cost, pool by pool; nothing where no pool or price is known."""
    if not bills:
        return []
    told = [
        f"{name} {bill['cost']:.2f} ({bill['nodeHours']:.1f} node hours, at most {bill['most']}"
        + (f", {bill['reclaimed']} reclaimed" if bill["reclaimed"] else "")
        + ")"
        for name, bill in bills.items()
    ]
    total = sum(bill["cost"] for bill in bills.values())
    return [f"bill           {total:.2f}: {', '.join(told)}"]


def _communication(cost: dict[str, Any]) -> list[str]:
    if not cost["jobs"]:
        return []
    return [
        f"communication  {cost['ratio']:.2f} times that of the best place, {cost['worst']:.2f} at "
        f"worst: {_seconds(cost['seconds'])} a step instead of {_seconds(cost['ideal'])} "
        f"({cost['jobs']} jobs that state their parallelism)"
    ]


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def _spans(spans: dict[str, int]) -> str:
    found = ", ".join(f"{count} in one {tier}" for tier, count in spans.items() if count)
    return f"jobs of several pods: {found}" if found else "no job of several pods"


def _waits(title: str, by_name: dict[str, dict[str, Any]]) -> str:
    times = ("mean", "p50", "p95", "max")
    numbers = [Column(name, number=True) for name in ("jobs", "unstarted", *times)]
    rows = [
        (name, w["jobs"], w["neverStarted"], *(_wait(w[key]) for key in times))
        for name, w in by_name.items()
    ]
    return plain(table((Column(title), *numbers), rows))


def _wait(seconds: float | None) -> str:
    return "-" if seconds is None else duration.show(seconds)


def _waiting(result: Result) -> list[str]:
    left = result.lives.waiting
    lines = [f"{life.name} waits: {life.waiting}" for life in left[:NAMED]]
    if len(left) > NAMED:
        lines.append(f"and {len(left) - NAMED} more; -o json names them all")
    return ["", *lines] if lines else []
