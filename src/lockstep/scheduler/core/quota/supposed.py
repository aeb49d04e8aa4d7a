"""What is supposed for a while: a journal of changes, each undone by its own inverse.

It is the one way to ask what would be. What counts in queues and what is held for others is changed
in place and is as before after ``rollback``; the tables of nodes are copied (``WhatIf``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Self

from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.quota.account import Account, Amounts
from lockstep.scheduler.core.quota.ledger import Ledger


class Supposed:
    """Changes that are supposed; as a context manager it takes them back at the end."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.rollback()

    def mark(self) -> int:
        """Return what ``rollback`` goes back to: all that is supposed now."""
        return len(self._undo)

    def rollback(self, mark: int = 0) -> None:
        """Take back what was supposed since a mark, the latest first."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def apply(self, change: Callable[[int], None], times: int) -> None:
        """Suppose a change so many times; with the opposite sign it undoes itself."""
        change(times)
        self._undo.append(partial(change, -times))

    def _set(self, owner: object, name: str, value: object) -> None:
        self._undo.append(partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def uncount(self, members: Iterable[Member]) -> None:
        """Suppose that pods, as far as they are counted in queues, are not."""
        ledger = self._ledger
        there = [(ledger.counted_in(m), m.charged) for m in members if m.account is not None]
        self.apply(partial(self._count, there), -1)

    def leave(self, members: Iterable[Member]) -> None:
        """Suppose that pods stand in no queue: that queues neither count nor name them."""
        for member in [one for one in members if one.account is not None]:
            account, key = self._ledger.counted_in(member), member.owner
            self._own(account, key)
            there = account.holding[key]
            del there[member.key]
            if not there:
                del account.holding[key]
                account.standing[account.priorities.pop(key)] -= 1
            self.uncount((member,))
            self._set(member, "account", None)

    def enter(self, members: Iterable[Member], queue: str, priority: int) -> None:
        """Suppose that pods of a workload of some priority stand in a queue."""
        account = self._ledger.account(queue)
        for member in members:
            self._own(account, member.owner)
            there = account.holding.setdefault(member.owner, {})
            if not there:
                account.priorities[member.owner] = priority
                account.standing[priority] += 1
            there[member.key] = member
            member.account = account.name
            self.apply(partial(self._count, [(account, member.charged)]), 1)

    def _own(self, account: Account, key: WorkloadKey) -> None:
        """Let what an account knows of a workload be changed without a trace."""
        holding = dict(account.holding)
        if key in holding:
            holding[key] = dict(holding[key])
        self._set(account, "holding", holding)
        self._set(account, "priorities", dict(account.priorities))
        self._set(account, "standing", Counter(account.standing))

    def give_back(self, given: Mapping[str, Amounts]) -> None:
        """Suppose that in accounts, by name, as much is counted less."""
        there = [(self._ledger.accounts[name], amounts) for name, amounts in given.items()]
        self.apply(partial(self._count, there), -1)

    def _count(self, there: Iterable[tuple[Account, Amounts]], times: int) -> None:
        for account, amounts in there:
            self._ledger.add(account, amounts, times)

    def reserve(self, reserved: dict[str, Amounts]) -> None:
        """Suppose that as much is kept of limits for reservations, by account."""
        self._set(self._ledger, "reserved", reserved)

    def promise(self, more: Mapping[WorkloadKey, tuple[str, Amounts]]) -> None:
        """Suppose that more is spoken for in queues: by workload its queue, and how much."""
        self._set(self._ledger, "promises", {**self._ledger.promises, **more})

    def leave_alone(self, members: Iterable[Member]) -> None:
        """Suppose that of all pods only some of those that are counted are there."""
        ledger = self._ledger
        for one in (*ledger.accounts.values(), ledger.top):
            self._set(one, "used", one.used)
            self._set(one, "claimed", one.claimed)
        ledger.begin()
        for member in members:
            ledger.add(ledger.counted_in(member), member.charged, 1)

    def allow(self, account: Account, resource: str, most: int) -> None:
        """Suppose that a queue may use as much of a resource."""
        ceiling = replace(account.ceilings[resource], amount=most)
        self._set(account, "ceilings", account.ceilings | {resource: ceiling})

    def lend(self) -> None:
        """Suppose that no queue keeps for itself what it does not use."""
        self._set(self._ledger, "keeps", False)
        for one in (*self._ledger.accounts.values(), self._ledger.top):
            self._set(one, "claimed", one.used)
