"""What is written about a workload: a gang's status and its pods' condition, as plain objects."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.api import timestamp
from lockstep.api.gang import Defragmentation, Gang, GangStatus
from lockstep.api.start import Start, split_start, with_start
from lockstep.api.wire import Json, convert, to_builtins
from lockstep.scheduler.core.cycle.max_wait import MAX_WAIT_EXCEEDED, given_up
from lockstep.scheduler.core.model.decisions import Estimate, Verdict
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement.preconditions import warnings
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.unique import distinct

SAME_SECONDS, SAME_PART = 2.0, 0.02
"""Estimates that differ by less, or by less than this part of the wait, say the same."""


@dataclass(frozen=True, slots=True)
class SeenEstimate:
    """An estimate, and the Unix time at which it was found."""

    estimate: Estimate
    seen: float
    uid: str = ""
    """Of the workload that it is about."""


def gang_status(
    cluster: Cluster,
    workload: Workload,
    verdict: Verdict | None,
    position: int | None,
    now: str,
    *,
    foreseen: SeenEstimate | None = None,
) -> Json:
    """Return the status that a gang should show; *verdict* says why it waits, where it does.

    Every field is there, so that the result can be written as a merge patch.

    Raises:
        ValueError: when the workload has no Gang object that could show it.
    """
    if workload.gang is None:
        raise ValueError(f"{workload.key} has no Gang object")
    old = workload.gang.status
    verdict = verdict or given_up(workload)
    phase = _phase(workload, verdict)
    waits = phase == "Pending"
    placed = phase in ("Placed", "Running", "Finished")
    return {
        "phase": phase,
        "reason": verdict.reason if verdict else "",
        "message": verdict.message if verdict else "",
        "remedy": verdict.remedy if verdict else "",
        **_counts(workload),
        **(_estimate(cluster, workload.gang, foreseen) if waits else NO_ESTIMATE),
        "nominated": _nominated(cluster, workload),
        "reservation": _reservation(cluster, workload),
        "defragmentation": _defragmentation(cluster, workload),
        "preempted": _replaced(workload, old.preempted) or None,
        "domain": _instead(old.domain, domain_of(cluster, workload)) or None,
        "position": position if waits else None,
        **_times(workload, old, now, waits=waits, placed=placed),
        "observedGeneration": workload.gang.metadata.generation,
        "conditions": _conditions(cluster, workload, verdict, placed=placed, now=now),
    }


def _times(workload: Workload, old: GangStatus, now: str, *, waits: bool, placed: bool) -> Json:
    return {
        "queuedAt": workload.queued_at or None,
        "waitingSince": (old.waiting_since or now) if waits else None,
        "placedAt": _placed_at(workload, old, now) if placed else _since_whole(workload),
    }


def _placed_at(workload: Workload, old: GangStatus, now: str) -> str:
    """Return since when a gang has its place: now, where all its pods came after it had another.

    It may have lost that one and got this within the pause between two writes.
    """
    bound = workload.bound
    if old.placed_at is None or (bound and all(m.created > old.placed_at for m in bound)):
        return now
    return old.placed_at


def _counts(workload: Workload) -> Json:
    """Return how many pods there are, have a node and run, in all and in each group."""
    groups = [
        (m.group.name, {"members": m.total, "bound": len(m.bound), "running": _running(m.bound)})
        for m in workload.pod_groups
    ]
    return {
        **{what: sum(c[what] for _, c in groups) for what in ("members", "bound", "running")},
        "groups": [{"name": name, **counts} for name, counts in groups],
    }


NO_ESTIMATE: Json = {
    "estimatedStart": None,
    "estimatedAt": None,
    "noEstimate": "",
    "notBefore": None,
}


def _estimate(cluster: Cluster, gang: Gang, foreseen: SeenEstimate | None) -> Json:
    held, shown = cluster.reservations.room, gang.status
    meta = gang.metadata
    if foreseen is None:
        if held is None or held.workload != WorkloadKey("Gang", meta.namespace, meta.name):
            return NO_ESTIMATE
        return NO_ESTIMATE | {"estimatedStart": timestamp.show(held.at)}
    if says_the_same(shown, foreseen):
        return {
            "estimatedStart": shown.estimated_start,
            "estimatedAt": shown.estimated_at,
            "noEstimate": shown.no_estimate,
            "notBefore": shown.not_before,
        }
    start = _start_of(foreseen.estimate)
    return {
        "estimatedStart": start.at,
        "estimatedAt": timestamp.show(foreseen.seen),
        "noEstimate": start.why,
        "notBefore": start.not_before,
    }


def says_the_same(shown: GangStatus, foreseen: SeenEstimate) -> bool:
    """Return whether an estimate need not be written, for it is much the same as the one shown."""
    if foreseen.estimate.at is not None and shown.estimated_at is None:
        return False
    start = Start(shown.estimated_start, shown.no_estimate, shown.not_before)
    return alike(_estimate_of(start), foreseen)


def alike(before: Estimate, foreseen: SeenEstimate) -> bool:
    """Return whether an estimate says much the same as one from *before*."""
    at = foreseen.estimate.at
    if at is None or before.at is None:
        return before == foreseen.estimate
    return abs(at - before.at) <= max(SAME_SECONDS, SAME_PART * (at - foreseen.seen))


def _estimate_of(start: Start) -> Estimate:
    return Estimate(timestamp.read(start.at), start.why, timestamp.read(start.not_before))


def _start_of(estimate: Estimate) -> Start:
    at, not_before = (
        timestamp.show(one) if one is not None else None
        for one in (estimate.at, estimate.not_before)
    )
    return Start(at, estimate.why, not_before)


def pod_message(why: str, shown: str, foreseen: SeenEstimate | None) -> str:
    """Return what a pod on its own says of *why* it waits, and of when it starts.

    What it has *shown* of that stays until something else is found.
    """
    _, before = split_start(shown)
    if foreseen is None or (before is not None and alike(_estimate_of(before), foreseen)):
        return with_start(why, before)
    return with_start(why, _start_of(foreseen.estimate))


def _nominated(cluster: Cluster, workload: Workload) -> dict[str, str | None] | None:
    """Return the nodes that are made free for it, those of before taken out one by one."""
    nomination = cluster.nominations.get(workload.key)
    before = workload.gang.status.nominated if workload.gang is not None else {}
    if nomination is None and cluster.nominations.passes_on(workload.key):
        return dict(before)
    return _instead(before, nomination.nodes if nomination is not None else {}) or None


def _reservation(cluster: Cluster, workload: Workload) -> Json | None:
    """Return what is kept for it until its time; a later leader goes by what is written here."""
    held = cluster.reservations.room
    if held is None or held.workload != workload.key:
        return None
    shown = workload.gang.status.reservation if workload.gang is not None else None
    place = _instead(shown.place if shown is not None else {}, held.place)
    return {"time": timestamp.show(held.at), "place": place}


def _since_whole(workload: Workload) -> str | None:
    """Return since when a gang stands of which members have gone; it is not to be rolled back."""
    known = workload.gang.status.placed_at if workload.gang is not None else None
    return known if workload.whole and workload.bound else None


def _instead(shown: dict[str, str], wanted: dict[str, str]) -> dict[str, str | None]:
    """Return *wanted* with what is shown beside it taken out, as patches merge what they hold."""
    return dict.fromkeys(shown) | wanted


def _replaced(workload: Workload, preempted: dict[str, str]) -> dict[str, str | None]:
    """Return the preempted pods, those taken out in whose stead there are others by now."""
    there = {member.name: member.uid for member in workload.members.values()}
    return {name: uid if there.get(name, uid) == uid else None for name, uid in preempted.items()}


def _defragmentation(cluster: Cluster, workload: Workload) -> Json | None:
    """Return what is known of moves for the gang's sake: of this leader, else as it shows."""
    known = cluster.defragmentations.get(workload.key)
    if known is None and workload.gang is not None:
        known = workload.gang.status.defragmentation
    return in_full(known) if known is not None else None


def in_full(record: Defragmentation) -> Json:
    """Return a record with all of its fields, so that a merge patch leaves none as it was."""
    return {
        "phase": record.phase,
        "request": record.request,
        "message": record.message,
        "price": record.price,
        "startedAt": record.started_at,
        "moves": [to_builtins(move) for move in record.moves],
    }


def _running(members: list[Member]) -> int:
    return sum(member.phase == "Running" for member in members)


def _phase(workload: Workload, verdict: Verdict | None) -> str:
    pod_groups = workload.pod_groups
    if workload.failed or (verdict is not None and verdict.reason == MAX_WAIT_EXCEEDED):
        return "Failed"
    if workload.over:
        return "Finished"
    if any(m.need for m in pod_groups):
        return "Placing" if any(m.bound for m in pod_groups) else "Pending"
    if any(member.assumed for m in pod_groups for member in m.bound):
        return "Placing"
    started = all(_running(m.bound) + m.finished >= m.group.minimum for m in pod_groups)
    return "Running" if started else "Placed"


def domain_of(cluster: Cluster, workload: Workload) -> dict[str, str]:
    """Return by tier the one domain in which all members with nodes stand."""
    rows = [cluster.table.rows[m.node] for m in workload.bound if m.node in cluster.table.rows]
    found: dict[str, str] = {}
    for tier in cluster.table.tiers.indices if rows else ():
        domains = distinct(tier.ids[rows])
        if len(domains) == 1 and domains[0] >= 0:
            found[tier.name] = tier.paths[int(domains[0])][-1]
    return found


def _conditions(
    cluster: Cluster, workload: Workload, verdict: Verdict | None, *, placed: bool, now: str
) -> list[Json]:
    wanted = [
        (
            "Placed",
            "True" if placed else "False",
            "" if placed or verdict is None else verdict.reason,
            "" if placed or verdict is None else verdict.message,
        )
    ]
    wanted += [(w.reason, "True", w.reason, w.message) for w in warnings(cluster, workload)]
    before = {c.type: c for c in workload.gang.status.conditions} if workload.gang else {}
    conditions = []
    for kind, status, reason, message in wanted:
        old = before.get(kind)
        since = old.last_transition_time if old and old.status == status else now
        conditions.append(
            {
                "type": kind,
                "status": status,
                "reason": reason or kind,
                "message": message,
                "lastTransitionTime": since,
            }
        )
    return conditions


def stumbled_status(verdict: Verdict) -> Json:
    """Return what a gang should show when no more can be said of it than that."""
    return {"reason": verdict.reason, "message": verdict.message, "remedy": verdict.remedy}


def unscheduled_status(member: Member, verdict: Verdict, now: str, *, outdated: bool) -> Json:
    """Return the status of a pod that waits, or has failed because its gang has given up.

    *outdated*: it shows a node that was being made free for it, and is another's by now.
    """
    status: Json = {"conditions": [unscheduled_condition(member, verdict, now)]}
    if outdated:
        status["nominatedNodeName"] = None
    if verdict.reason == MAX_WAIT_EXCEEDED:
        status |= {"phase": "Failed", "reason": verdict.reason, "message": verdict.message}
    return status


def unscheduled_condition(member: Member, verdict: Verdict, now: str) -> Json:
    """Return the condition that a waiting pod shows, in the words that autoscalers know."""
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated" if member.gates else "Unschedulable",
        "message": verdict.message,
        "lastTransitionTime": now,
    }


def difference(shown: GangStatus, new: Json) -> Json:
    """Return the fields of *new* that the gang does not show yet, as a merge patch has them."""
    old = to_builtins(shown)
    # Through the view, so that a default that is left out equals one that is written.
    wanted = to_builtins(convert(_without_nulls(new), GangStatus))
    return {name: value for name, value in new.items() if old.get(name) != wanted.get(name)}


def _without_nulls(new: Json) -> Json:
    """Return a merge patch as the object that it makes of an empty one."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in new.items()
        if value is not None
    }
