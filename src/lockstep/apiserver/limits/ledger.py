"""What is used of each quota: sums that events keep up to date, and the writes under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.wire import Json
from lockstep.apiserver.limits.amounts import NOTHING, Amount, Amounts
from lockstep.apiserver.limits.quota import concerns, hard, usage
from lockstep.apiserver.store import Event, Key, Record, Store

QUOTAS: Final = "resourcequotas"


@dataclass(slots=True)
class Account:
    """A quota, and what is used of it."""

    record: Record
    quota: Json
    names: frozenset[str]
    since: int
    """The revision whose use was counted when the account was opened."""
    used: Amounts = field(default_factory=dict)

    def usage_of(self, storage: str, obj: Json) -> Amounts:
        """Return what *obj* uses of this quota."""
        if not concerns(self.quota, storage, obj):
            return {}
        return {name: amount for name, amount in usage(storage, obj).items() if name in self.names}

    def book(self, storage: str, obj: Json, *, sign: int) -> None:
        """Add what *obj* uses, or take it off."""
        for name, amount in self.usage_of(storage, obj).items():
            known = self.used.get(name, NOTHING)
            self.used[name] = known + amount if sign > 0 else known - amount


class Ledger:
    """Knows the use of every quota of every namespace.

    Only durable events are booked; what is decided but not yet durable is added when asked for, so
    that two writes at the same time cannot both take the last of something.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: dict[str, dict[str, Account]] = {}
        for record in store.objects(QUOTAS):
            self._open(record)
        store.subscribe(self._follow)

    def accounts(self, namespace: str) -> list[Account]:
        """Return the accounts of a namespace in the order of their names."""
        return [account for _, account in sorted(self._accounts.get(namespace, {}).items())]

    def used(self, account: Account) -> Amounts:
        """Return what is used, with what is about to be."""
        total = dict(account.used)
        for event in self._store.ahead(account.record.key.namespace):
            key = event.record.key
            before = self._store.get(key)
            if before is not None:
                _book(account, total, before, sign=-1)
            if not event.deleted:
                _book(account, total, event.record, sign=1)
        return total

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            key = event.record.key
            if key.resource == QUOTAS:
                self._follow_quota(event)
            if key.namespace in self._accounts:
                self._book(event)

    def _follow_quota(self, event: Event) -> None:
        key = event.record.key
        known = self._accounts.get(key.namespace, {}).get(key.name)
        if event.deleted:
            self._close(key)
        elif known is None or known.quota.get("spec") != event.record.object().get("spec"):
            self._open(event.record)
        else:
            known.record = event.record

    def _book(self, event: Event) -> None:
        record, previous = event.record, event.previous
        old = previous.object() if previous is not None else None
        new = None if event.deleted else record.object()
        for account in self._accounts[record.key.namespace].values():
            # The store has had all of a batch of events before the first is followed.
            if record.revision <= account.since:
                continue
            for obj, sign in ((old, -1), (new, 1)):
                if obj is not None:
                    account.book(record.key.resource, obj, sign=sign)

    def _open(self, record: Record) -> None:
        quota = record.object()
        account = Account(record, quota, frozenset(hard(quota)), self._store.revision)
        account.used = dict.fromkeys(account.names, NOTHING)
        for found in self._store.in_namespace(record.key.namespace):
            account.book(found.key.resource, found.object(), sign=1)
        self._accounts.setdefault(record.key.namespace, {})[record.key.name] = account

    def _close(self, key: Key) -> None:
        accounts = self._accounts.get(key.namespace, {})
        accounts.pop(key.name, None)
        if not accounts:
            self._accounts.pop(key.namespace, None)


def _book(account: Account, total: dict[str, Amount], record: Record, *, sign: int) -> None:
    for name, amount in account.usage_of(record.key.resource, record.object()).items():
        known = total.get(name, NOTHING)
        total[name] = known + amount if sign > 0 else known - amount
