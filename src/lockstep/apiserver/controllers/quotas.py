"""The status of resource quotas: their limits, and what is used of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lockstep.api.wire import Json
from lockstep.apiserver.controllers.namespaces import NamespaceStatus
from lockstep.apiserver.limits.ledger import QUOTAS, Account, Ledger
from lockstep.apiserver.objects import Objects

_TOGETHER_SECONDS = 0.1


def quota_status(objects: Objects, ledger: Ledger) -> NamespaceStatus:
    """Return what writes down the use of each quota when something in its namespace changes."""

    def statuses(namespace: str) -> Iterator[tuple[str, Callable[[Json], Json]]]:
        for account in ledger.accounts(namespace):
            yield account.record.key.name, _used(account)

    return NamespaceStatus(objects, QUOTAS, statuses, _TOGETHER_SECONDS)


def _used(account: Account) -> Callable[[Json], Json]:
    def mutate(quota: Json) -> Json:
        limits = (quota.get("spec") or {}).get("hard") or {}
        used = {name: str(amount) for name, amount in sorted(account.used.items())}
        return {**quota, "status": {"hard": limits, "used": used}}

    return mutate
