"""Who holds GPUs that do little, and what of the cluster is of no use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.api.wire import Json
from lockstep.console.views import cluster
from lockstep.console.views.cluster import OTHERS, NodeRow
from lockstep.console.views.picture import Picture

IDLE = 10
"""Percent of use below which a GPU that is held counts as idle."""
MOST = 500


def page(rows: Iterable[NodeRow], may_see: Callable[[str], bool]) -> Picture:
    """Return a row for each holder of GPUs, the most wasteful first; others are added up.

    What is wasted is the part of the measured GPUs that their use leaves, in GPUs.
    """
    there = list(rows)
    found: dict[str, Json] = {}
    for (space, owner), (gpus, measured, percent) in cluster.usage_by_owner(there).items():
        key = f"{space}/{owner}" if may_see(space) else OTHERS
        one = found.setdefault(key, {"owner": key, "gpus": 0, "measured": 0, "percent": 0})
        one["gpus"] += gpus
        one["measured"] += measured
        one["percent"] += percent
    for one in found.values():
        percent = one.pop("percent")
        one["use"] = round(percent / one["measured"]) if one["measured"] else None
        one["wasted"] = round(one["measured"] - percent / 100, 2)
    order = sorted(found, key=lambda key: (-found[key]["wasted"], -found[key]["gpus"], key))
    facts = {**cluster.totals(there), **_use(there)}
    return Picture(facts, order[:MOST], {key: found[key] for key in order[:MOST]})


def _use(rows: Iterable[NodeRow]) -> Json:
    measured = percent = idle = 0
    for one in rows:
        for index, value in enumerate(one.use):
            if value is None:
                continue
            measured += 1
            percent += value
            idle += value < IDLE and bool(one.held[index])
    return {
        "measured": measured,
        "use": round(percent / measured, 1) if measured else None,
        "idle": idle,
    }
