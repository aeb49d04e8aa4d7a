"""The quota that is kept for those to whom a time is promised.

Of each limit so much is kept from a workload as it must leave free while it runs: at the time of
each promise what those need that start and run by promise then, less what standing pods will have
given back. A workload that has ended before a promise falls due leaves that alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf

from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.quota.account import Account, Amounts
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.reservations.reserved_nodes import hold
from lockstep.scheduler.core.state.cluster import Cluster

NOTHING: Mapping[str, Amounts] = {}


def kept_in(cluster: Cluster, queue: str, asked: Mapping[str, int]) -> dict[Account, list[str]]:
    """Return the accounts around a queue of whose ceilings anything can be kept, and resources.

    Of queues around its own nothing is kept where some queue lends not all: what counts there then
    depends on what its parts use.
    """
    ledger, found = cluster.ledger, {}
    for account in ledger.account(queue).chain:
        names = [name for name in asked if name in account.ceilings]
        if names and (not ledger.keeps or account.queue == queue):
            found[account] = names
    return found


def needed(
    cluster: Cluster,
    held: Sequence[Reservation],
    *,
    start: float = -inf,
    end: float = inf,
    gone: Mapping[str, Amounts] = NOTHING,
    accounts: Iterable[str] | None = None,
) -> dict[str, Amounts]:
    """Return by account how much of what its ceilings leave must be left to promises by what runs
    from *start* to *end*, once so much has been given back in each.
    """
    if accounts is None:
        accounts = {name for one in held for name in one.given}
    found: dict[str, Amounts] = {}
    for name in accounts:
        there = [one for one in held if name in one.given]
        back = gone.get(name, {})
        found[name] = {
            resource: _needed(
                there, name, resource, start=start, end=end, back=back.get(resource, 0)
            )
            for resource in {resource for one in there for resource in one.given[name]}
        }
    return found


def _needed(
    there: Sequence[Reservation],
    name: str,
    resource: str,
    *,
    start: float,
    end: float,
    back: int,
) -> int:
    most = sum(one.asked.get(resource, 0) for one in there if one.at <= start < one.until)
    for moment in there:
        given = moment.given[name].get(resource)
        if given is not None and start < moment.at < end:
            total = back - given
            for one in there:
                if one.at <= moment.at < one.until:
                    total += one.asked.get(resource, 0)
            most = max(most, total)
    return most


def left_to(cluster: Cluster, queue: str, held: Sequence[Reservation]) -> dict[str, Amounts]:
    """Return what is kept of all limits where of those around a queue as much is as must be left to
    some promises alone.
    """
    around = [one.name for one in cluster.ledger.account(queue).chain]
    return cluster.ledger.reserved | needed(cluster, held, accounts=around)


def _given_by(cluster: Cluster, gone: Collection[Member], account: Account) -> Amounts:
    total: Amounts = {}
    for member in gone:
        if member.account and account in cluster.ledger.accounts[member.account].chain:
            for name, amount in member.charged.items():
                total[name] = total.get(name, 0) + amount
    return total


def suppose_others(
    quota: Supposed, cluster: Cluster, workload: Workload, gone: Collection[Member], at: float
) -> None:
    """Suppose of quota that it is as it will be for a workload that starts at Unix time *at*, when
    some pods have given theirs back.
    """
    ledger = cluster.ledger
    if not ledger.specs:
        return
    end = at + (inf if workload.runtime is None else workload.runtime)
    others = [held for held in cluster.reservations if held.workload != workload.key]
    chain = ledger.account(workload.queue).chain if others else ()
    back = {account.name: _given_by(cluster, gone, account) for account in chain}
    around = [account.name for account in chain]
    quota.reserve(needed(cluster, others, start=at, end=end, gone=back, accounts=around))
    quota.uncount(gone)


def own_released(cluster: Cluster, key: WorkloadKey) -> Supposed:
    """Suppose that what is held for a workload is free, as it is for the workload itself."""
    world, held = Supposed(cluster.ledger), cluster.reservations.of(key)
    if held is not None:
        others = [one for one in cluster.reservations if one is not held]
        world.reserve(left_to(cluster, held.queue, others))
        world.apply(partial(hold, cluster, held), -1)
    return world
