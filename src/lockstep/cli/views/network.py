"""What people see of a network's check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final


def check_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the verdict, then each check that is not well with its evidence and remedy."""
    verdict = found["verdict"]
    place = f" {verdict['place']}" if verdict["place"] else ""
    yield f"verdict: {verdict['kind']}{place}"
    for one in found["checks"]:
        where = f" {one['place']}" if one["place"] else ""
        yield f"{one['state']:7} {one['group']}{where}: {one['evidence']}"
        if one["fix"] and one["state"] != "ok":
            yield f"        to do: {one['fix']}"


def tree_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the domains with their nodes, from the widest tier, then the faults."""
    tiers, nodes = found["tiers"], found["nodes"]
    groups: dict[tuple[str, ...], list[str]] = {}
    for node, path in nodes.items():
        groups.setdefault(tuple(reversed(path)), []).append(node)
    before: tuple[str, ...] = ()
    for path, held in sorted(groups.items()):
        for depth, domain in enumerate(path):
            if path[: depth + 1] != before[: depth + 1]:
                yield f"{'  ' * depth}{tiers[-1 - depth]} {domain or '?'}"
        yield f"{'  ' * len(path)}{', '.join(held)}"
        before = path
    for one in found["faults"]:
        yield f"fault: {one['kind']} {one['place']}: {one['evidence']}"


MOST_SLOW: Final = 8
"""Nodes that are named one by one."""


def slow_lines(found: Mapping[str, str]) -> list[str]:
    """Return which nodes are taken last, given by node what makes its network slow, or nothing."""
    slow = sorted(node for node, why in found.items() if why)
    lines = [
        f"  the scheduler takes {node} last because its network is slow: {found[node]}"
        for node in slow
    ]
    more = len(slow) - MOST_SLOW
    if more <= 0:
        return lines
    return [*lines[:MOST_SLOW], f"  and {more} more; `lockstep network check` says what is slow"]
