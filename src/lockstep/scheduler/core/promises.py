"""Whether what was promised to a unit can still be kept, as things stand."""

from __future__ import annotations

import numpy as np

from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.kept_quota import others_then, promises
from lockstep.scheduler.core.kept_room import Ending, charged, comes_about, ends_in_time, reserved
from lockstep.scheduler.core.preemption.supposition import Supposition
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.queues.account import Account
from lockstep.scheduler.core.reservation import Reservation, turn_of
from lockstep.scheduler.core.units import Member, Unit


def can_be_kept(
    cluster: Cluster, unit: Unit, problem: Problem, held: Reservation, ending: Ending
) -> bool:
    """Return whether a unit can start at its time and place, while nothing is kept for it yet.

    Who is to end ends in time, and nobody comes who would not heed the promise.
    """
    if not still_asked(cluster, held, unit) or not comes_about(cluster, held, ending):
        return False
    rows = np.zeros(cluster.table.capacity, dtype=bool)
    rows[[cluster.table.rows[node] for node in held.wanted]] = True
    state = Supposition(cluster, ending.members)

    def placed(gone: list[Member]) -> bool:
        with others_then(cluster, unit, gone, held.at):
            found = admission.place(cluster, unit, problem, rows, state=state)
        return found is not None and len(found.assignments) >= len(held.place)

    account = admission.limited(cluster, unit)
    if placed(ending.members):
        return True
    # Only now, as it takes a look at all that counts in the queue or around it.
    return account is not None and placed(_counted(cluster, account, held, ending.now))


def quota_comes_about(cluster: Cluster, held: Reservation) -> bool:
    """Return whether a unit's queue may use what is promised in time, whatever room there is."""
    there = [one for one in promises(cluster) if one.at <= held.at < one.until]
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


def still_asked(cluster: Cluster, held: Reservation, unit: Unit) -> bool:
    """Return whether a unit still waits in its turn for what the place was chosen for."""
    turn = unit.queue, cluster.priorities.of(unit), turn_of(unit)
    if turn != (held.queue, held.priority, held.turn):
        return False
    waiting = {member.name: member for muster in unit.musters for member in muster.pending}
    if held.place.keys() - waiting.keys():
        return False
    for muster in unit.musters:
        if sum(member.name in held.place for member in muster.pending) < muster.need:
            return False
    place = {waiting[pod]: node for pod, node in held.place.items()}
    if not held.wanted:
        return charged(cluster, place) == held.asked
    return reserved(cluster, unit, held.at, place).same_amounts(held)


def _counted(cluster: Cluster, account: Account, held: Reservation, now: float) -> list[Member]:
    """Return who ends in time of those who count in a queue or in one of those around it."""
    counted = cluster.ledger.counted(account.chain[-1])
    return [member for member in counted if ends_in_time(cluster, member, held, now)]
