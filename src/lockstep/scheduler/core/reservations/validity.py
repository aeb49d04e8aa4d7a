"""Whether what is reserved for a workload can still be held, as things stand; also for what an
earlier leader has reserved.

A reservation is on record in the gang's status. Made anew it could only be for later: pods bound
just now do not yet say since when they run, and each workload that has passed since then is in its
way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lockstep.api import timestamp
from lockstep.scheduler.core.model.reservation import Reservation, turn_of
from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.reservations.reserved_nodes import (
    Ending,
    charged,
    comes_about,
    ends_in_time,
    reserved,
)
from lockstep.scheduler.core.reservations.reserved_quota import suppose_others
from lockstep.scheduler.core.state.cluster import Cluster


def can_be_kept(
    cluster: Cluster, workload: Workload, problem: Problem, held: Reservation, ending: Ending
) -> bool:
    """Return whether a workload can start at its time and place, while nothing is kept for it yet.

    What is to end ends in time, and nothing comes that would not heed the promise.
    """
    if not still_asked(cluster, held, workload) or not comes_about(cluster, held, ending):
        return False
    rows = np.zeros(cluster.table.capacity, dtype=bool)
    rows[[cluster.table.rows[node] for node in held.wanted]] = True
    state = WhatIf(cluster, ending.members)

    def placed(gone: list[Member]) -> bool:
        with Supposed(cluster.ledger) as quota:
            suppose_others(quota, cluster, workload, gone, held.at)
            found = admission.place(cluster, workload, problem, rows, state=state)
        return found is not None and len(found.assignments) >= len(held.place)

    account = admission.limited(cluster, workload)
    if placed(ending.members):
        return True
    # Only now, as it takes a look at all that counts in the queue or around it.
    return account is not None and placed(_counted(cluster, account, held, ending.now))


def quota_comes_about(cluster: Cluster, held: Reservation) -> bool:
    """Return whether a workload's queue may use what is promised in time; room does not count."""
    there = [one for one in cluster.reservations if one.at <= held.at < one.until]
    for account in cluster.ledger.account(held.queue).chain:
        for name, given in held.given.get(account.name, {}).items():
            ceiling = account.ceilings.get(name)
            if ceiling is None:
                continue
            load = account.claimed.get(name, 0) + cluster.ledger.promised(account, name) - given
            load += sum(one.asked.get(name, 0) for one in there if account.name in one.given)
            if load > ceiling.amount:
                return False
    return True


def still_asked(cluster: Cluster, held: Reservation, workload: Workload) -> bool:
    """Return whether a workload still waits in its turn for what the place was chosen for."""
    turn = workload.queue, cluster.priorities.of(workload), turn_of(workload)
    if turn != (held.queue, held.priority, held.turn):
        return False
    waiting = {
        member.name: member for pod_group in workload.pod_groups for member in pod_group.pending
    }
    if held.place.keys() - waiting.keys():
        return False
    for pod_group in workload.pod_groups:
        if sum(member.name in held.place for member in pod_group.pending) < pod_group.need:
            return False
    place = {waiting[pod]: node for pod, node in held.place.items()}
    if not held.wanted:
        return charged(cluster, place) == held.asked
    return reserved(cluster, workload, held.at, place).same_amounts(held)


def _counted(cluster: Cluster, account: Account, held: Reservation, now: float) -> list[Member]:
    """Return the pods that end in time of those that count in a queue or in one around it."""
    counted = cluster.ledger.counted(account.chain[-1])
    return [member for member in counted if ends_in_time(cluster, member, held, now)]


def recorded(cluster: Cluster) -> list[Reservation]:
    """Return the reservations on record, whether they can be held or not.

    Where there are several, all but one had come to nothing; the next one in line had the last, and
    comes first.
    """
    found = [one for workload in cluster.workloads.values() for one in _recorded(cluster, workload)]
    return sorted(found, key=lambda one: (-one.priority, one.turn))


def _recorded(cluster: Cluster, workload: Workload) -> Iterator[Reservation]:
    record = workload.gang.status.reservation if workload.gang is not None else None
    if record is None or not workload.open or workload.bound:
        return
    at = timestamp.read(record.time)
    if at is None:
        return  # a reservation that cannot be read cannot be kept; it is made anew
    waiting = {
        member.name: member for pod_group in workload.pod_groups for member in pod_group.pending
    }
    place = {waiting[pod]: node for pod, node in record.place.items() if pod in waiting}
    if place:
        yield reserved(cluster, workload, at, place)
