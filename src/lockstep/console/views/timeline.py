"""A job's life as stages: waiting, starting, running, and what came between."""

from __future__ import annotations

from typing import Any

from lockstep.api.gang import Gang
from lockstep.api.training import TrainingJob

Json = dict[str, Any]


def stages(job: TrainingJob, gang: Gang | None) -> list[Json]:
    """Return stages in order, each with its name, start, and end (empty while it lasts).

    Objects keep the time of the latest change of each condition, so restarts before the last one
    are counted (``restarts`` of the job) and not drawn.
    """
    status = job.status
    since = {c.type: (c.status, c.last_transition_time or "") for c in job.status.conditions}
    begin = job.metadata.creation_timestamp or ""
    placed = gang.status.placed_at if gang is not None else None
    first = status.start_time or ""
    ended = status.completion_time or ""
    cuts: list[tuple[str, str]] = [("Pending", begin)]
    if first:
        cuts.append(("Starting", first))
    restarting, at = since.get("Restarting", ("", ""))
    if status.restarts and at and at > first:
        cuts.append(("Restarting", at) if restarting == "True" else ("Running", first))
        if restarting != "True":
            cuts.append(("Restarting", at))
    if status.restarts and placed and placed > at:
        cuts.append(("Starting", placed))
    running, at = since.get("Running", ("", ""))
    if at and (running == "True" or ended):
        cuts.append(("Running", at if running == "True" else max(first, placed or "")))
    if status.phase == "Suspended":
        cuts.append(("Suspended", since.get("Suspended", ("", ""))[1] or begin))
    return _joined(cuts, ended)


def _joined(cuts: list[tuple[str, str]], ended: str) -> list[Json]:
    known = sorted((cut for cut in cuts if cut[1]), key=lambda cut: cut[1])
    found: list[Json] = []
    for name, start in known:
        if found and found[-1]["start"] == start:
            found.pop()
        if found and found[-1]["stage"] == name:
            continue
        if found:
            found[-1]["end"] = start
        found.append({"stage": name, "start": start, "end": ""})
    if found and ended:
        found[-1]["end"] = ended
    return found
