"""What pods that are gone had asked for, kept in the queues' statuses over restarts.

Pods that are there tell themselves what they ask for; only of those that are gone something has to
be written down. Each is counted once: in its queue, or in the queue ``default`` where its own has
no object.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from math import inf
from typing import NamedTuple

from lockstep.api.names import CPU, GPU, GPU_CARDS, GPU_COMPUTE, GPU_MEMORY, MEMORY
from lockstep.api.quantity import parse, to_int, to_milli
from lockstep.api.queue import Queue, Usual, UsualRequest
from lockstep.scheduler.core.model.workload import DEFAULT_QUEUE, Member
from lockstep.scheduler.core.resources.gpu_shares import MIB, SHARE_NAMES, GpuShare
from lockstep.scheduler.core.scoring.demand_history import (
    DAY,
    DemandHistory,
    PastRequest,
    Tally,
    day_of,
    moment_at,
    moment_of,
    moment_on,
)

KINDS = 128
"""Kinds of requests that one queue keeps; the rarest are forgotten beyond it."""
TOLERANCE = 0.05
"""Part of what a queue keeps that may be gone without having been written down."""

MOST = 1 << 50
"""Amounts and counts beyond it are no pod's."""
FAR = 1000.0
"""Half-lives from which on it does not matter how many more there are."""


class DemandStore:
    """The requests of pods that are gone, by queue. What queues show is read once."""

    def __init__(self, past: DemandHistory) -> None:
        self._past = past
        self._gone: dict[str, Tally] = {}
        self._read: set[str] = set()
        self._recalled: dict[str, list[_Count]] = {}
        """By queue what it was found to keep, until the time is known."""
        self.flaws: dict[str, str] = {}
        """By queue what of its status could not be read; the teller of events consumes it."""

    def recall(self, queue: Queue) -> None:
        """Take in what a queue keeps, when it is first seen: later it shows what is known here."""
        name = queue.metadata.name
        if name in self._read:
            return
        self._read.add(name)
        if queue.status.usual is None:
            return
        found, flaws = _understood(queue.status.usual)
        if found:
            self._recalled[name] = found
        if flaws:
            self.flaws[name] = flaws[0]

    def count(self, now: float = inf) -> None:
        """Count what was taken in, as of the day (Unix time) of *now* where it says a later one.

        A day that is yet to come would outweigh everything that comes until then.
        """
        if not self._recalled:
            return
        latest = moment_at(now + DAY)  # another clock may have told the day
        for name, found in self._recalled.items():
            for one in found:
                moment = min(one.moment, latest)
                self._past.recall(one.ask, moment, one.pods)
                self._tally(name).add(one.ask, moment, one.pods)
        self._recalled.clear()

    def follow(
        self, old: Member | None, new: Member | None, queue: Callable[[Member], str]
    ) -> None:
        """Count a pod when it is first seen, and once more when it is gone: for its *queue*."""
        if old is not None and new is not None and old.uid == new.uid:
            return
        if old is not None and old.ours:
            tally = self._tally(queue(old))
            tally.add(self._past.ask(old.shape), moment_of(old.created))
        if new is not None and new.ours:
            self._past.note(new.shape, new.created)

    def kept(self, name: str, shown: Usual | None, queues: Container[str]) -> Usual | None:
        """Return what a queue should show: what it shows, as long as that will do.

        *queues* are all that have objects; ``default`` keeps what belongs to the others.
        """
        if name in self._recalled:
            return shown
        if name == DEFAULT_QUEUE:
            self._take_in(queues)
        tally = self._gone.get(name)
        if tally is None:
            return None
        if shown is not None:
            found, flaws = _understood(shown)
            later = min(found[0].moment - tally.base, FAR) if found else 0.0
            there = sum(one.pods for one in found) * 2.0**later
            if not flaws and abs(tally.total - there) <= TOLERANCE * tally.total:
                return shown
        return _shown(tally)

    def _tally(self, name: str) -> Tally:
        found = self._gone.get(name)
        if found is None:
            found = self._gone[name] = Tally(KINDS)
        return found

    def _take_in(self, queues: Container[str]) -> None:
        for name in [n for n in self._gone if n != DEFAULT_QUEUE and n not in queues]:
            tally = self._gone.pop(name)
            for ask, pods in _as_of_the_latest(tally):
                self._tally(DEFAULT_QUEUE).add(ask, tally.latest, pods)


def _as_of_the_latest(tally: Tally) -> list[tuple[PastRequest, float]]:
    """Return how many pods of each kind there were, in pods made on the latest day."""
    since = 2.0 ** (tally.base - tally.latest)
    return [(ask, weight * since) for ask, weight in tally.usual()]


def _shown(tally: Tally) -> Usual:
    """Return a tally as it is shown, which it forgets no more of: pods as of its latest day."""
    tally.prune()
    counts = [(ask, round(1000 * pods)) for ask, pods in _as_of_the_latest(tally)]
    return Usual(
        day=day_of(tally.latest),
        asked=[
            UsualRequest(requests=_requests(ask), models=sorted(ask.models), pods=f"{count}m")
            for ask, count in counts
            if count
        ],
    )


def _requests(ask: PastRequest) -> dict[str, str | int | float]:
    amounts: dict[str, str | int | float] = {
        CPU: f"{ask.cpu}m" if ask.cpu else 0,
        MEMORY: f"{ask.memory}Mi" if ask.memory else 0,
        GPU: ask.gpus,
    }
    shares = ask.share.asks if ask.share is not None else {}
    return {name: amount for name, amount in (amounts | shares).items() if amount}


class _Count(NamedTuple):
    """So many pods with one request, as of a moment."""

    ask: PastRequest
    moment: float
    pods: float


def _understood(shown: Usual) -> tuple[list[_Count], list[str]]:
    """Return the requests that are shown, and what cannot be read of them."""
    try:
        moment = moment_on(shown.day)
    except ValueError:
        return [], [f"status.usual.day is {shown.day!r}, which is no day such as 2026-01-31"]
    found, flaws = list[_Count](), list[str]()
    for number, one in enumerate(shown.asked):
        try:
            pods = parse(str(one.pods))
            if not 0 < pods <= MOST:
                raise ValueError(f"pods is {one.pods}, which Lockstep never writes")
            found.append(_Count(_ask(one), moment, float(pods)))
        except ValueError as error:
            flaws.append(f"status.usual.asked[{number}] cannot be read: {error}")
    return found, flaws


def _ask(shown: UsualRequest) -> PastRequest:
    """Return what is asked for.

    Raises:
        ValueError: when it is nothing that a pod asks for.
    """
    unknown = shown.requests.keys() - {CPU, MEMORY, GPU, *SHARE_NAMES}
    if unknown:
        raise ValueError(f"{min(unknown)} is none of the resources that are kept")
    amounts = {name: to_int(amount) for name, amount in shown.requests.items()}
    for name, amount in amounts.items():
        if not 0 <= amount <= MOST:
            raise ValueError(f"{name} is {shown.requests[name]}, which no pod asks for")
    cards, compute = amounts.get(GPU_CARDS, 0), amounts.get(GPU_COMPUTE, 0)
    memory = amounts.get(GPU_MEMORY, 0)
    if bool(cards) != bool(compute or memory):
        raise ValueError(f"{GPU_CARDS} goes with {GPU_COMPUTE} or {GPU_MEMORY}")
    return PastRequest(
        cpu=to_milli(shown.requests.get(CPU, 0)),
        memory=-(-amounts.get(MEMORY, 0) // MIB),
        gpus=amounts.get(GPU, 0),
        share=GpuShare(cards, compute, memory) if cards else None,
        models=frozenset(shown.models),
    )
