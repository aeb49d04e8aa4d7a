"""Node pools drawn in one line, beside the clusters of ``tests.support.drawn``."""

from __future__ import annotations

import re
from typing import Any

from lockstep.api.node_pool import NodePool
from lockstep.api.wire import convert
from lockstep.pools.core.growth import Growth
from lockstep.pools.core.pool import Pool

POOL = re.compile(r"(?P<name>[\w-]+): (?:(?P<min>\d+)\.\.)?(?P<max>\d+)x(?P<gpus>\d+)(?P<more>.*)")


def node_pool(text: str, *, status: dict[str, Any] | None = None, **spec: Any) -> NodePool:
    """Build a pool: ``gpu: 0..8x8 leaf=4 price=10 spot`` is up to 8 nodes of 8 GPUs, 4 to a
    leaf.
    """
    match = POOL.fullmatch(text)
    assert match is not None, text
    words = match["more"].split()
    given = dict(word.partition("=")[::2] for word in words)
    capacity: dict[str, Any] = {"cpu": given.get("cpu", 96), "memory": "1Ti"}
    if int(match["gpus"]):
        capacity["nvidia.com/gpu"] = int(match["gpus"])
    built: dict[str, Any] = {
        "min": int(match["min"] or 0),
        "max": int(match["max"]),
        "template": {
            "capacity": capacity,
            "labels": {"pay": "spot" if "spot" in given else "full"},
        },
        "provider": {"command": {"program": "true"}},
        "spot": "spot" in given,
        "arrival": given.get("arrival", "1m"),
        "idle": given.get("idle", "10m"),
    }
    if "leaf" in given:
        built["domains"] = [
            {"label": "spine", "nodes": 1000},
            {"label": "leaf", "nodes": int(given["leaf"])},
        ]
    if "price" in given:
        built["nodeHour"] = float(given["price"])
    if "budget" in given:
        built["hourlyBudget"] = float(given["budget"])
    tree = {"metadata": {"name": match["name"]}, "spec": {**built, **spec}}
    return convert(tree | ({"status": status} if status else {}), NodePool)


def pool(text: str, **more: Any) -> Pool:
    """Return a pool without nodes, as decisions see it."""
    built = node_pool(text, **more)
    return Pool(built, built.spec.node_hour)


def bought(found: Growth) -> dict[str, dict[str, list[int]]]:
    """Return by gang and pool the slots that are got; the minimum's are the gang ``min``'s."""
    told: dict[str, dict[str, list[int]]] = {}
    for one in found.purchases:
        gang = one.workload.key.name if one.workload is not None else "min"
        told.setdefault(gang, {}).setdefault(one.pool, []).extend(one.slots)
    return told
