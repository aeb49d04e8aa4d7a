"""Accounts as they would be for a moment: with some pods gone, more given back, other limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lockstep.scheduler.core.model.workload import Member
from lockstep.scheduler.core.quota.account import Account, Amounts
from lockstep.scheduler.core.quota.ledger import Ledger


@contextmanager
def without(ledger: Ledger, members: Sequence[Member]) -> Iterator[None]:
    """Suppose that pods which are counted are not."""
    for member in members:
        ledger.add(ledger.counted_in(member), member.charged, -1)
    try:
        yield
    finally:
        for member in members:
            ledger.add(ledger.counted_in(member), member.charged, 1)


@contextmanager
def less(ledger: Ledger, given: Mapping[str, Amounts]) -> Iterator[None]:
    """Suppose that in accounts, by name, as much is counted less."""
    for name, amounts in given.items():
        ledger.add(ledger.accounts[name], amounts, -1)
    try:
        yield
    finally:
        for name, amounts in given.items():
            ledger.add(ledger.accounts[name], amounts, 1)


@contextmanager
def alone(ledger: Ledger, members: Iterable[Member]) -> Iterator[None]:
    """Suppose that of all pods only some of those that are counted are there."""
    before = [(one, one.used, one.claimed) for one in (*ledger.accounts.values(), ledger.top)]
    ledger.begin()
    for member in members:
        ledger.add(ledger.counted_in(member), member.charged, 1)
    try:
        yield
    finally:
        for one, used, claimed in before:
            one.used, one.claimed = used, claimed


@contextmanager
def allowing(account: Account, resource: str, most: int) -> Iterator[None]:
    """Suppose that a queue may use as much of a resource."""
    before = account.ceilings
    ceiling = replace(before[resource], amount=most)
    account.ceilings = before | {resource: ceiling}
    try:
        yield
    finally:
        account.ceilings = before


@contextmanager
def lending(ledger: Ledger) -> Iterator[None]:
    """Suppose that no queue keeps for itself what it does not use."""
    keeps, accounts = ledger.keeps, (*ledger.accounts.values(), ledger.top)
    before = [(one, one.claimed) for one in accounts]
    ledger.keeps = False
    for one in accounts:
        one.claimed = one.used
    try:
        yield
    finally:
        ledger.keeps = keeps
        for one, claimed in before:
            one.claimed = claimed
