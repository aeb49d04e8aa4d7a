"""How far the ranks of a job are, as their launchers report it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lockstep.api import names
from lockstep.api.core import Lease, Pod
from lockstep.api.rendezvous import LONGEST_REPORT, Report
from lockstep.api.wire import Json
from lockstep.console.views.picture import Picture


def page(leases: Iterable[Lease], pods: Iterable[Pod]) -> Picture:
    """Return a row for each pod that has a report of its own; ``newest`` is the farthest step.

    A report that names another pod's uid is not believed.
    """
    by_name = {pod.metadata.name: pod for pod in pods}
    rows: dict[str, Json] = {}
    for lease in leases:
        pod, said = by_name.get(lease.metadata.name), report(lease)
        if pod is None or said is None or said.uid != pod.metadata.uid:
            continue
        rows[pod.metadata.name] = _row(pod, said)
    order = sorted(rows, key=lambda name: (rows[name]["rank"], name))
    steps = [row["step"] for row in rows.values() if row["step"] is not None]
    facts: Json = {"newest": max(steps, default=None), "oldest": min(steps, default=None)}
    return Picture(facts, order, rows)


def report(lease: Lease) -> Report | None:
    """Return what a launcher has reported; None where that cannot be read."""
    text = lease.metadata.annotations.get(names.REPORT_ANNOTATION, "")
    if not text or len(text) > LONGEST_REPORT:
        return None
    try:
        return msgspec.json.decode(text, type=Report)
    except (msgspec.DecodeError, RecursionError):
        return None


def _row(pod: Pod, said: Report) -> Json:
    rank = pod.metadata.annotations.get(names.RANK_ANNOTATION, "")
    row: Json = {
        "pod": pod.metadata.name,
        "node": pod.spec.node_name,
        "rank": int(rank) if rank.isascii() and rank.isdigit() else 0,
        "state": said.state,
        "step": said.step,
        "generation": said.generation,
        "saved": said.saved.step if said.saved is not None else None,
    }
    if said.trouble:
        row["trouble"] = said.trouble[:500]
    if said.ended is not None:
        ended = said.ended
        how = f"signal {ended.signal}" if ended.signal else f"code {ended.code}"
        row["ended"] = f"rank {ended.rank}: {how}: {ended.line[:300]}"
    return row
