"""Holding what is written to the quotas and the limit ranges of its namespace."""

from __future__ import annotations

from typing import Final

from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.limits.amounts import NOTHING
from lockstep.apiserver.limits.ledger import Ledger
from lockstep.apiserver.limits.quota import excess, unsaid, usage
from lockstep.apiserver.limits.ranges import fill_in, violations
from lockstep.apiserver.store import Store

_RANGES: Final = "limitranges"
# What may use more after a change than before it.
_GROWING: Final = frozenset({"persistentvolumeclaims", "pods", "services"})


class LimitGuard:
    """Fills in defaults of limit ranges, and refuses what is beyond a limit or a quota."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ledger = Ledger(store)

    def fill_in(self, namespace: str, pod: Json) -> None:
        """Give *pod* the requests and limits that its namespace has for those without."""
        if self._store.has(_RANGES, namespace):
            fill_in(pod, self._ranges(namespace))

    def check(self, served: Served, namespace: str, new: Json, old: Json | None) -> None:
        """Let *new* pass, which replaces *old* where that is given.

        Raises:
            StatusError: when it is beyond a limit, or there is not enough left of a quota.
        """
        if not namespace:
            return
        storage, kind = served.storage, served.kind
        if old is not None and (storage not in _GROWING or new.get("spec") == old.get("spec")):
            return
        why = self._outside_ranges(storage, namespace, new) or self._over_quota(
            storage, namespace, new, old
        )
        if why:
            raise status.forbidden(kind.group, kind.plural, new["metadata"]["name"], why)

    def _outside_ranges(self, storage: str, namespace: str, new: Json) -> str:
        if not self._store.has(_RANGES, namespace):
            return ""
        found = violations(storage, new, self._ranges(namespace))
        return f"[{', '.join(found)}]" if len(found) > 1 else "".join(found)

    def _over_quota(self, storage: str, namespace: str, new: Json, old: Json | None) -> str:
        for account in self.ledger.accounts(namespace):
            more = account.usage_of(storage, new)
            if not more:
                continue
            if storage == "pods" and (why := unsaid(account.quota, new)):
                return why
            before = usage(storage, old) if old is not None else {}
            delta = {name: amount - before.get(name, NOTHING) for name, amount in more.items()}
            if why := excess(account.quota, self.ledger.used(account), delta):
                return why
        return ""

    def _ranges(self, namespace: str) -> list[Json]:
        found = sorted(self._store.objects(_RANGES, namespace), key=lambda record: record.key)
        return [record.object() for record in found]
