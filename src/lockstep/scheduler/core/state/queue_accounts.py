"""Which queue a pod's use counts in, and how important it is there."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.quota.account import CardKind
from lockstep.scheduler.core.quota.ledger import Ledger
from lockstep.scheduler.core.state.priority_classes import Priorities


class QueueAccounts:
    """Enters pods into the ledger, each in the queue of its workload."""

    def __init__(
        self,
        ledger: Ledger,
        priorities: Priorities,
        workload_of: Callable[[Member], Workload | None],
        card: Callable[[str], CardKind],
    ) -> None:
        self._ledger, self._priorities = ledger, priorities
        self._workload_of, self._card = workload_of, card

    def queue(self, member: Member) -> str:
        """Return the queue of a pod: its gang's, else its own."""
        workload = self._workload_of(member)
        return workload.gang.spec.queue if workload is not None and workload.gang else member.queue

    def count(self, member: Member) -> None:
        """Count a pod that has a node in its queue."""
        if not self._ledger.active or not member.ours:
            return
        account = self._ledger.enter(member, self.queue(member), self._card(member.node))
        if account is not None:
            self._ledger.rank(account, member, self._importance(member))

    def recount(self, workload: Workload) -> None:
        """Count a gang's pods in the queue that it is in now."""
        for member in workload.members.values():
            if member.account is not None:
                self._ledger.leave(member)
                self.count(member)

    def _importance(self, member: Member) -> int:
        workload = self._workload_of(member)
        named = self._priorities.stated(workload) if workload is not None else None
        if named is not None:
            return named
        others = workload.members.values() if workload is not None else ()
        return max((m.priority for m in others), default=member.priority)
