"""What one look changes about the pools: requests, failures, decisions, as statuses. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Any, Literal

from msgspec.structs import replace

from lockstep.api import timestamp
from lockstep.api.node_pool import NodePoolStatus, PoolDecision, PoolRequest
from lockstep.api.wire import to_builtins
from lockstep.pools.core import holding
from lockstep.pools.core.growth import Growth, Purchase
from lockstep.pools.core.pool import Pool, back_off, key_of
from lockstep.scheduler.core.state.cluster import Cluster

DECISIONS_KEPT = 20


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a provider did not do what it was asked."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call of a provider ended."""

    call: Literal["create", "delete", "present"]
    pool: str
    request: str = ""
    present: frozenset[int] = frozenset()
    """The slots that have a machine, for the call that asks."""
    lost: Mapping[int, str] = field(default_factory=dict)
    """Why slots have none, where the provider says so: ``REASON: message``."""
    sent: frozenset[str] = frozenset()
    """The requests that the provider knew when it was asked."""
    error: Failure | None = None


@dataclass(slots=True)
class Book:
    """The changes of one look at one time (Unix seconds)."""

    now: float
    drops: dict[str, dict[int, str]] = field(default_factory=dict)
    """By pool the slots whose machines are not wanted any more, with their nodes' names."""
    _news: dict[str, list[str]] = field(default_factory=dict)

    def note(self, pool: Pool, outcome: Outcome) -> Pool:
        """Return a pool after a call of its provider has ended."""
        if outcome.call == "present":
            return self._missing(self._drop_orphans(pool, outcome.present), outcome)
        if outcome.call == "delete":
            return pool
        mine = next((one for one in pool.requests if one.id == outcome.request), None)
        if mine is None:
            return pool
        if outcome.error is None:
            requests = [replace(o, sent=True) if o is mine else o for o in pool.requests]
            return _with(pool, requests=requests)
        came = [slot for slot in mine.slots if slot in pool.names]
        rest = [one for one in pool.requests if one is not mine]
        if came:
            rest.append(replace(mine, slots=came, sent=True))
        lost = set(mine.slots) - set(came)
        return self._fail(_with(pool, requests=rest), lost, outcome.error)

    def review(self, cluster: Cluster, pool: Pool) -> Pool:
        """Return a pool after its requests were looked through."""
        found = holding.review(cluster, pool, self.now)
        reviewed = _with(pool, requests=found.requests)
        if found.fulfilled and pool.object.status.failures:
            reviewed = _with(reviewed, failures=0, retry_at=None, reason="", message="")
        if found.unwanted:
            self._drop(pool, found.unwanted)
            self._tell(pool, f"{_nodes(found.unwanted)} cancelled: nothing waits for them any more")
        if found.late:
            text = f"{_nodes(found.late)} did not come within {pool.patience:g} s"
            remedy = "see the provider's own log, or raise spec.timeout"
            failure = Failure("TimedOut", f"{text}; {remedy}")
            reviewed = self._fail(reviewed, found.late, failure)
        return reviewed

    def enter(self, pool: Pool, growth: Growth, cluster: Cluster) -> Pool:
        """Return a pool with the requests that a plan adds, and without those that cannot help."""
        vain = [
            one
            for one in pool.requests
            if one.holders and all(key_of(h) in growth.refused for h in one.holders)
        ]
        going = [one for one in pool.requests if one not in vain]
        for one in vain:
            coming = [slot for slot in one.slots if slot not in pool.ready]
            self._drop(pool, coming)
            self._tell(pool, f"{_nodes(one.slots)} let go: what is still missing cannot be had")
        new = [one for one in growth.purchases if one.pool == pool.name]
        made = [holding.request_for(pool, one, self.now) for one in new]
        for purchase in new:
            self._tell(pool, _why(purchase, pool))
        return _with(pool, requests=holding.joined([*going, *made], pool.name, growth, cluster))

    def _drop_orphans(self, pool: Pool, present: Collection[int]) -> Pool:
        """Have machines removed that belong to no node and to no request."""
        known = pool.names.keys() | pool.coming | pool.blocked
        orphans = sorted(set(present) - known)
        if orphans:
            self._drop(pool, orphans)
            self._tell(pool, f"{_nodes(orphans)} removed: they belong to no request")
        return pool

    def _missing(self, pool: Pool, outcome: Outcome) -> Pool:
        """Give up what a provider has taken and does not list: it has failed, or has lied."""
        gone = {
            slot: outcome.lost.get(slot, "ProviderFailed: taken by the provider, and not listed")
            for request in pool.requests
            if request.id in outcome.sent
            for slot in request.slots
            if slot not in outcome.present and slot not in pool.names
        }
        if not gone:
            return pool
        requests = [_without(one, gone.keys()) for one in pool.requests]
        left = _with(pool, requests=[one for one in requests if one.slots])
        reason, _, words = next(iter(gone.values())).partition(": ")
        return self._fail(left, gone.keys(), Failure(reason, f"{_nodes(gone)}: {words}"))

    def _fail(self, pool: Pool, slots: Collection[int], failure: Failure) -> Pool:
        self._drop(pool, slots)
        failures = pool.object.status.failures + 1
        wait = back_off(pool, failures)
        self._tell(pool, f"{failure.reason}: {failure.message}")
        return _with(
            pool,
            failures=failures,
            retry_at=timestamp.show(self.now + wait),
            reason=failure.reason,
            message=failure.message,
        )

    def _drop(self, pool: Pool, slots: Collection[int]) -> None:
        dropped = self.drops.setdefault(pool.name, {})
        dropped.update({slot: pool.names.get(slot, "") for slot in slots})

    def _tell(self, pool: Pool, text: str) -> None:
        self._news.setdefault(pool.name, []).append(text)

    def news(self, pool: str) -> list[str]:
        """Return what was decided about a pool in this look."""
        return self._news.get(pool, [])

    def status(self, pool: Pool, idle: int = 0) -> NodePoolStatus:
        """Return what a pool's status says after this look; *idle* of its nodes are."""
        before = pool.object.status
        stamp = timestamp.show(self.now)
        said = [PoolDecision(at=stamp, text=text) for text in self.news(pool.name)]
        rate = pool.node_hour
        return replace(
            before,
            nodes=len(pool.names),
            ready=len(pool.ready),
            idle=idle,
            coming=len(pool.coming),
            hourly_cost=round(rate * len(pool.names), 4) if rate is not None else None,
            decisions=[*before.decisions, *said][-DECISIONS_KEPT:],
        )

    def invalid(self, pool: Pool, message: str) -> Pool:
        """Return a pool that is not looked after, for what is wrong with it."""
        return _with(pool, reason="Invalid", message=message)

    def valid(self, pool: Pool) -> Pool:
        """Return a pool with which nothing is wrong any more."""
        if pool.object.status.reason != "Invalid":
            return pool
        return _with(pool, reason="", message="")


def patch(before: NodePoolStatus, after: NodePoolStatus) -> dict[str, Any]:
    """Return the merge patch from one status to another; what has gone is null."""
    old, new = to_builtins(before), to_builtins(after)
    return {
        name: new.get(name) for name in old.keys() | new.keys() if old.get(name) != new.get(name)
    }


def _with(pool: Pool, **fields: Any) -> Pool:
    obj = pool.object
    # Cached values follow from the requests; a new pool finds them anew.
    return changed(pool, object=replace(obj, status=replace(obj.status, **fields)))


def _without(request: PoolRequest, slots: Collection[int]) -> PoolRequest:
    return replace(request, slots=[slot for slot in request.slots if slot not in slots])


def _nodes(slots: Collection[int]) -> str:
    return f"{len(slots)} {'node' if len(slots) == 1 else 'nodes'}"


def _why(purchase: Purchase, pool: Pool) -> str:
    whom = purchase.workload
    if whom is None:
        return f"{_nodes(purchase.slots)} asked for: min is {pool.object.spec.min}"
    key = whom.key
    return (
        f"{_nodes(purchase.slots)} asked for {key.kind.lower()} {key.namespace}/{key.name}, "
        "which waits for room"
    )
