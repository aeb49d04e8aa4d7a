"""What would let a workload start that a limit of its queue keeps waiting, tried out before it is
said: less asked for, quota given back by others, limits raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lockstep.scheduler.core.explain.amounts import amount
from lockstep.scheduler.core.explain.remedies import Remedies
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.quota.account import OverQuota, in_all
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.state.cluster import Cluster

LIMITS = 8
"""Limits that are raised one after the other before no remedy is said."""
HOPELESS = "fewer or smaller pods: with other limits there would be no room for it either"
"""Where nothing that was tried helps."""


def binding(cluster: Cluster, workload: Workload, problem: Problem) -> OverQuota | None:
    """Return which limit of which queue keeps the workload waiting; None when none does."""
    over = admission.over_quota(cluster, workload, problem)
    return over or admission.in_the_way(cluster, workload, problem)


class QuotaRemedies:
    """Changes tried on one problem that a limit keeps waiting."""

    def __init__(self, cluster: Cluster, workload: Workload, problem: Problem) -> None:
        self._cluster = cluster
        self._workload = workload
        self._problem = problem

    def sentence(self, over: OverQuota) -> str:
        """Return the ways that were tried and help."""
        given, raised = list(self._given_back(over)), list(self._raised(over))
        queue = f" in queue {over.account.queue}"
        if given and raised and given[0].endswith(queue):
            raised = [raised[0].replace(queue, " there", 1)]
        fewer = [] if given else self._fewer(over)
        return ", or ".join([*fewer, *given, *raised]) or HOPELESS

    def _fewer(self, over: OverQuota) -> Iterator[str]:
        """Yield how much less may be asked for; of pods that are not alike nothing is said."""
        problem, number = self._problem, self._problem.needs[0].need
        if len(problem.items) != 1 or len(problem.needs) != 1:
            return
        each = admission.asked(self._cluster, problem).get(over.resource, 0) // max(1, number)
        most = (number * each - over.short) // each if each else 0
        for pods in range(min(most, number - 1), 0, -1):
            less = replace(problem, needs=[replace(problem.needs[0], need=pods, want=pods)])
            if binding(self._cluster, self._workload, less) is None:
                if Remedies(self._cluster, self._workload, less).starts():
                    yield f"at most {amount(over.resource, pods * each)} asked for"
                return

    def _given_back(self, over: OverQuota) -> Iterator[str]:
        """Yield what must be given back in the queues whose limits are passed."""
        account = admission.limited(self._cluster, self._workload)
        if account is None or over.asked > over.amount:
            return
        ledger, own = self._cluster.ledger, set(self._workload.members)
        outer = over.account if over.field != "lending" else ledger.top
        gone = [member for member in ledger.counted(outer) if member.name not in own]
        if not gone:
            return
        short = amount(over.resource, over.short)
        where = "" if outer is ledger.top else f" in queue {over.account.queue}"
        if WhatIf(self._cluster, gone).place(self._workload, self._problem):
            yield f"{short} given back{where}"

    def _raised(self, over: OverQuota) -> Iterator[str]:
        """Yield the limits to be raised together, and whether there must be room besides."""
        said = list[str]()
        with Supposed(self._cluster.ledger) as raised:
            found: OverQuota | None = over
            while found is not None:
                if len(said) == LIMITS:
                    return
                said.append(self._limit(found))
                if found.field == "lending":
                    raised.lend()
                else:
                    raised.allow(found.account, found.resource, found.used + found.asked)
                found = binding(self._cluster, self._workload, self._problem)
            remedies = Remedies(self._cluster, self._workload, self._problem)
            if remedies.starts():
                yield wording.listing(said)
            elif (domain := remedies.any_emptied()) is not None:
                yield f"{wording.listing(said)} with room {remedies.inside(domain)} when others end"

    def _limit(self, over: OverQuota) -> str:
        if over.field == "lending":
            return "lending by the queues that keep what they are guaranteed"
        most = over.used + over.asked
        if over.field == "borrowingLimit":
            most -= in_all(over.account.guaranteed, over.resource)
        return f"a {over.field} of {amount(over.resource, most)} in queue {over.account.queue}"
