"""One route as a router carries it: replicas, requests that wait, counts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from lockstep.api.serving import RouteLoad, RouteSpec
from lockstep.serve.core.choice import Hints, Turns, by_prefix, by_session, least_loaded
from lockstep.serve.core.prefix import Prefixes
from lockstep.serve.router.upstream import Pool


@dataclass(eq=False)
class Replica:
    """One pod that takes requests."""

    uid: str
    revision: str
    pool: Pool
    in_flight: int = 0
    gone: bool = False
    grpc_port: int = 0


class Waiting(Protocol):
    """A request that waits for a replica."""

    held_bytes: int
    hints: Hints

    def go(self, replica: Replica) -> None:
        """Send it to *replica*."""

    def refuse(self, status: int, message: str, retry_after: int) -> None:
        """Answer it here."""


@dataclass(eq=False)
class Lane:
    """The way of requests to one service."""

    key: str
    spec: RouteSpec
    changed: Callable[[Lane, bool], None]
    """Is told when its load changed, and whether it is urgent."""
    replicas: dict[str, Replica] = field(default_factory=dict)
    waiting: deque[tuple[float, Waiting]] = field(default_factory=deque)
    turns: Turns = field(default_factory=Turns)
    mirrored: Turns = field(default_factory=Turns)
    prefixes: Prefixes = field(default_factory=Prefixes)
    turn: int = 0
    requests: int = 0
    refused: int = 0
    in_flight: int = 0
    held_bytes: int = 0
    busy: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)

    def load(self) -> RouteLoad:
        """Return its counts as of now."""
        self._account()
        return RouteLoad(
            requests=self.requests,
            refused=self.refused,
            busy=round(self.busy, 4),
            in_flight=self.in_flight,
            held=len(self.waiting),
            closed=self.spec.closing,
            answers=dict(self.answers),
            failures=dict(self.failures),
        )

    def _account(self) -> None:
        now = time.monotonic()
        self.busy += (now - self._since) * (self.in_flight + len(self.waiting))
        self._since = now

    def admit(self, request: Waiting) -> None:
        """Send a new request to a replica, hold it until there is one, or refuse it."""
        self._account()
        self.requests += 1
        replica = None if self.waiting else self._choose(request.hints)
        if replica is not None:
            self._send(request, replica)
            return
        hold = self.spec.hold
        if len(self.waiting) >= hold.requests or self.held_bytes + request.held_bytes > hold.bytes:
            self.refused += 1
            self.changed(self, False)
            request.refuse(429, f"too many requests wait for {self.key}", 1)
            return
        self.waiting.append((time.monotonic(), request))
        self.held_bytes += request.held_bytes
        self.changed(self, len(self.waiting) == 1)

    def again(self, request: Waiting) -> None:
        """Take back a request that no replica has answered; it goes before all that wait."""
        self.waiting.appendleft((time.monotonic(), request))
        self.held_bytes += request.held_bytes
        self.dispatch()

    def forget(self, request: Waiting) -> None:
        """Drop a request that waits and whose client is gone."""
        self._account()
        for one in self.waiting:
            if one[1] is request:
                self.waiting.remove(one)
                self.held_bytes -= request.held_bytes
                self.changed(self, False)
                return

    def done(self, replica: Replica) -> None:
        """Note that *replica* has answered a request, or lost it."""
        self._account()
        self.in_flight -= 1
        replica.in_flight -= 1
        if replica.gone and replica.in_flight == 0:
            replica.pool.close()
        if self.waiting:
            self.dispatch()
        self.changed(self, False)

    def answered(self, replica: Replica, status: int) -> None:
        """Count an answer of *replica*; 502 and 504 of the router's own count as its failures."""
        revision = replica.revision
        self.answers[revision] = self.answers.get(revision, 0) + 1
        if status >= 500:
            self.failures[revision] = self.failures.get(revision, 0) + 1

    def dispatch(self) -> None:
        """Send what waits, in its order, as far as there are replicas for it."""
        while self.waiting:
            replica = self._choose(self.waiting[0][1].hints)
            if replica is None:
                break
            self._account()
            _, request = self.waiting.popleft()
            self.held_bytes -= request.held_bytes
            self._send(request, replica)
        if self.waiting and self.spec.matches:
            self._pass_by()
        self.changed(self, False)

    def _pass_by(self) -> None:
        """Send what waits behind a request whose own revision has no room."""
        for one in list(self.waiting)[1:]:
            replica = self._choose(one[1].hints)
            if replica is not None:
                self._account()
                self.waiting.remove(one)
                self.held_bytes -= one[1].held_bytes
                self._send(one[1], replica)

    def expire(self) -> None:
        """Refuse what has waited too long."""
        limit = time.monotonic() - self.spec.hold.seconds
        while self.waiting and self.waiting[0][0] < limit:
            self._account()
            _, request = self.waiting.popleft()
            self.held_bytes -= request.held_bytes
            self.refused += 1
            request.refuse(503, f"no replica of {self.key} took the request in time", 5)
            self.changed(self, False)

    def begin(self, replica: Replica) -> None:
        """Note that *replica* gets a request; ``done`` ends it."""
        self._account()
        self.in_flight += 1
        replica.in_flight += 1
        self.changed(self, False)

    def _send(self, request: Waiting, replica: Replica) -> None:
        self.begin(replica)
        if request.hints.keys:
            self.prefixes.took(replica.uid, request.hints.keys)
        request.go(replica)

    def mirror(self) -> Replica | None:
        """Return the replica that gets a copy of the next request; none where it gets none."""
        wish = self.spec.mirror
        if not wish.percent or self.spec.closing:
            return None
        if self.mirrored.take({"copied": wish.percent, "not": 100 - wish.percent}) != "copied":
            return None
        there = [one for one in self.replicas.values() if one.revision == wish.revision]
        return least_loaded(there, self.spec.concurrency, self.turn) if there else None

    def _choose(self, hints: Hints) -> Replica | None:
        """Return the replica for the next request; none while the route is closed or all full."""
        if self.spec.closing or not self.replicas:
            return None
        there = self._of_one(hints)
        if there is None:
            return None
        self.turn += 1
        limit = self.spec.concurrency
        if hints.session:
            return by_session(there, hints.session, limit)
        if hints.keys:
            return by_prefix(there, hints.keys, self.prefixes, limit)
        return least_loaded(there, limit, self.turn)

    def _of_one(self, hints: Hints) -> list[Replica] | None:
        """Return the replicas of the revision whose turn it is; none where none has one."""
        backends = self.spec.backends
        if len(backends) == 1 and backends[0].weight and not hints.revision:
            name = backends[0].revision
            return [one for one in self.replicas.values() if one.revision == name] or None
        by_revision: dict[str, list[Replica]] = {}
        for one in self.replicas.values():
            by_revision.setdefault(one.revision, []).append(one)
        revision: str | None = hints.revision
        if revision not in by_revision:
            weights = {b.revision: b.weight for b in backends if b.revision in by_revision}
            revision = self.turns.take(weights)
        return by_revision[revision] if revision is not None else None
