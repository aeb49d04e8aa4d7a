"""The home page: the user's own jobs, what is left of their queues, and what to do about both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from lockstep.api.gang import Gang
from lockstep.api.queue import Queue
from lockstep.api.wire import Json
from lockstep.console.views import cluster, queue_tree
from lockstep.console.views.cluster import NodeRow
from lockstep.console.views.job_list import JobList
from lockstep.console.views.jobs import JobRow
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import Query
from lockstep.console.views.waste import IDLE

SHOWN = 5
GROUPS = {
    "waiting": ("Pending", "Restarting"),
    "running": ("Starting", "Running"),
    "failed": ("Failed",),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the user may see."""

    user: str
    jobs: JobList
    sees: Callable[[str], bool]
    gang: Callable[[JobRow], Gang | None]
    queues: Mapping[str, Queue] | None
    nodes: Sequence[NodeRow] | None


def page(seen: Seen) -> Picture:
    """Return the jobs that the user made, or all that are seen where there are none of these."""
    mine = replace(Query(limit=SHOWN), user=seen.user)
    phases = seen.jobs.phases(mine, seen.sees)
    own = bool(phases)
    if not own:
        mine = replace(mine, user="")
        phases = seen.jobs.phases(mine, seen.sees)
    groups = {
        name: [_job(row, seen) for row in _some(seen, mine, wanted)]
        for name, wanted in GROUPS.items()
    }
    facts: Json = {"own": own, "phases": dict(sorted(phases.items())), **groups}
    if seen.queues is not None:
        facts["queues"] = _queues(seen, mine)
    if seen.nodes is not None:
        facts["cluster"] = cluster.totals(seen.nodes)
    facts["advice"] = _advice(seen, groups)
    return Picture(facts)


def _some(seen: Seen, query: Query, phases: tuple[str, ...]) -> list[JobRow]:
    wanted = replace(query, phases=frozenset(phases))
    if not any(seen.jobs.phases(wanted, seen.sees)[phase] for phase in phases):
        return []
    found = (row for _, row in seen.jobs.matching(wanted, seen.sees))
    return list(islice(found, SHOWN))


def _job(row: JobRow, seen: Seen) -> Json:
    gang = seen.gang(row)
    remedy = gang.status.remedy if gang is not None and row.why else ""
    return {**msgspec.structs.asdict(row), "remedy": remedy}


def _queues(seen: Seen, query: Query) -> list[Json]:
    """Return the queues of the user's jobs that are not over, the fullest first."""
    there = seen.queues or {}
    wanted = seen.jobs.queues(query, seen.sees)
    rows = [queue_tree.row(there[name], 0) for name in sorted(wanted) if name in there]
    rows.sort(key=lambda row: -(row["used"] / max(1.0, row["guaranteed"] or 1.0)))
    return rows[:SHOWN]


def _advice(seen: Seen, groups: Mapping[str, list[Json]]) -> list[Json]:
    """Return what the user could do now: what helps jobs that wait, and GPUs that stand idle."""
    found = [
        {"about": f"{one['namespace']}/{one['name']}", "kind": "remedy", "text": one["remedy"]}
        for one in groups["waiting"]
        if one["remedy"]
    ]
    used = cluster.usage_by_owner(seen.nodes or ())
    for (space, owner), (gpus, measured, percent) in sorted(used.items()):
        row = seen.jobs.rows.rows.get(f"{space}/{owner}")
        if row is None or not seen.sees(space) or not measured:
            continue
        if percent / measured < IDLE:
            use = round(percent / measured)
            told = {"gpus": gpus, "use": use}
            found.append({"about": f"{space}/{owner}", "kind": "idle", **told})
    return found[:SHOWN]
