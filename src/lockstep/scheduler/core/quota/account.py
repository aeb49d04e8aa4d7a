"""One queue as the scheduler accounts for it: its amounts, and what it holds of them.

Amounts are integers: thousandths of CPUs and of GPUs, bytes, pieces. The GPUs of one model are a
resource of their own beside all GPUs: ``nvidia.com/gpu/MODEL``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lockstep.api import duration
from lockstep.api.containers import Quantity
from lockstep.api.names import CPU, GPU
from lockstep.api.quantity import to_int, to_milli
from lockstep.api.queue import QueueSpec
from lockstep.scheduler.core.model.workload import Member, PodKey, WorkloadKey
from lockstep.scheduler.core.quota.guarantee import MODEL_PREFIX, short

Amounts = dict[str, int]
ITSELF = "/"
"""Ends the name of the account for what is in a queue that has parts, but in none of them."""


def in_thousandths(resource: str) -> bool:
    """Return whether a resource is counted in thousandths: CPUs and, for their shares, GPUs."""
    return resource in (CPU, GPU) or resource.startswith(MODEL_PREFIX)


def amounts_of(quantities: Mapping[str, Quantity]) -> Amounts:
    """Return the quantities of a queue in the workloads of accounts; zeros stay, they forbid.

    Raises:
        ValueError: when one is not a quantity.
    """
    return {
        name: to_milli(value) if in_thousandths(name) else to_int(value)
        for name, value in quantities.items()
    }


class CardKind(NamedTuple):
    """What the GPUs of a node are like, as far as queues go by it."""

    model: str
    memory: int
    """MiB of one; 0 where the node does not say."""


UNKNOWN_CARD = CardKind("", 0)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most of one resource that a queue may use, and what says so."""

    amount: int
    field: str
    """``limit`` or ``borrowingLimit``."""


@dataclass(eq=False, slots=True)
class Account:
    """One queue: what it was promised and allowed, and what it and its parts hold."""

    name: str
    spec: QueueSpec | None = None
    parent: Account | None = None
    parts: list[Account] = field(default_factory=list)
    chain: tuple[Account, ...] = ()
    """The account and those that it is part of, the outermost last."""
    managed: frozenset[str] = frozenset()
    """The resources that this queue or a sibling is guaranteed."""
    guaranteed: Amounts = field(default_factory=dict)
    ceilings: dict[str, Ceiling] = field(default_factory=dict)
    kept: Amounts = field(default_factory=dict)
    """What is guaranteed and not lent: taken from the others even while it is idle."""
    used: Amounts = field(default_factory=dict)
    claimed: Amounts = field(default_factory=dict)
    """What is used and, in the parts, kept; the same object as ``used`` where none is kept."""
    holding: dict[WorkloadKey, dict[PodKey, Member]] = field(default_factory=dict)
    """The workloads that have pods with nodes directly in this queue."""
    priorities: dict[WorkloadKey, int] = field(default_factory=dict)
    """How important each of those workloads is."""
    standing: Counter[int] = field(default_factory=Counter)
    """How many of them there are of each priority."""
    average: dict[str, float] = field(default_factory=dict)
    """Decayed use, where past use counts."""
    lag: float = 0.0
    """How far it is ahead of its fair share, as part of the cluster for each weight, in seconds."""
    pace: float | None = None
    """How fast that grows; None while nothing waits in it, or in no sibling."""
    job: float = 0.0
    """What part of the cluster one of its workloads has."""
    carried: float = 0.0
    """What of the lag counts beside present use: part of the cluster for each weight."""
    lasting: Amounts = field(default_factory=dict)
    """What was used when the last round was over, and so until something happened."""

    @classmethod
    def of(cls, name: str, spec: QueueSpec) -> Account:
        """Return the account of a queue, without its place among the others.

        Raises:
            ValueError: when an amount is not a quantity.
        """
        guaranteed = amounts_of(spec.guaranteed)
        lent = amounts_of(spec.lending_limit)
        if spec.lending == "Never":
            lent = dict.fromkeys(guaranteed, 0)
        kept = {name: max(0, most - lent.get(name, most)) for name, most in guaranteed.items()}
        return cls(
            name,
            spec,
            guaranteed=guaranteed,
            ceilings=_ceilings(spec, guaranteed),
            kept={resource: amount for resource, amount in kept.items() if amount},
        )

    @property
    def queue(self) -> str:
        """Return the name of the queue."""
        return self.name.removesuffix(ITSELF)

    @property
    def weight(self) -> float:
        """Return the queue's share of what is left over, against its siblings."""
        return self.spec.weight if self.spec is not None else 1

    @property
    def half_life(self) -> float | None:
        """Return the seconds in which past use counts half; None where it does not count."""
        stated = self.spec.usage_half_life if self.spec is not None else None
        return duration.parse(stated) or None if stated is not None else None

    def rest(self) -> None:
        """Take note of what is used until anything happens, where past use counts."""
        if self.half_life is not None:
            self.lasting = dict(self.used)

    def succeed(self, old: Account | None) -> None:
        """Take over what the account that stood for the queue until now knows of its past."""
        if old is not None:
            self.average, self.lasting = old.average, old.lasting
            self.lag, self.job, self.carried = old.lag, old.job, old.carried

    @property
    def preempts(self) -> bool:
        """Return whether what waits here may take the place of what is less important.

        ``Never`` of a queue holds for all its parts, as a limit does.
        """
        stated = (one.spec for one in self.chain)
        return all(spec is None or spec.preemption == "LowerPriority" for spec in stated)

    def over(self, resource: str) -> int:
        """Return how much of a resource is used beyond what is guaranteed."""
        return short(self.guaranteed, self.used, resource)

    def over_claimed(self, resource: str) -> int:
        """Return how much of a resource is used, or kept idle by its parts, beyond what is
        guaranteed: others lack both.
        """
        return short(self.guaranteed, self.claimed, resource)

    def idle(self, resource: str) -> int:
        """Return how much of a resource its parts keep for themselves without using it."""
        return self.claimed.get(resource, 0) - self.used.get(resource, 0)

    def outward(self, top: Account) -> Iterator[Account]:
        """Yield the account and those that it is part of, without the whole cluster."""
        one: Account | None = self
        while one is not None and one is not top:
            yield one
            one = one.parent

    def apart(self, other: Account) -> tuple[Account, Account] | None:
        """Return the siblings of which the one holds this account and the other the *other*.

        None where one of them holds both, and where they share no queue.
        """
        depth = 1
        mine, theirs = self.chain[::-1], other.chain[::-1]
        if mine[0] is not theirs[0]:
            return None
        while depth < min(len(mine), len(theirs)):
            if mine[depth] is not theirs[depth]:
                return mine[depth], theirs[depth]
            depth += 1
        return None

    def claim_kept(self) -> Amounts:
        """Claim what queues in it keep for themselves; return what this one so takes."""
        for part in self.parts:
            for name, amount in part.claim_kept().items():
                self.claimed[name] = self.claimed.get(name, 0) + amount
        return {
            name: max(self.claimed.get(name, 0), self.kept.get(name, 0))
            for name in self.claimed.keys() | self.kept.keys()
        }

    def leaves(self) -> Iterator[Account]:
        """Yield the accounts in this one that workloads are counted in."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def models(self) -> list[str]:
        """Return the models of GPUs, as resources, of which this queue is guaranteed some."""
        return [r for r, amount in self.guaranteed.items() if amount and r.startswith(MODEL_PREFIX)]

    def guaranteed_below(self) -> frozenset[str]:
        """Return the resources that a part of this queue is guaranteed."""
        return frozenset(r for one in self.parts for r, amount in one.guaranteed.items() if amount)


@dataclass(frozen=True, slots=True)
class OverQuota:
    """A resource of which a queue may not use as much as is asked for."""

    account: Account
    resource: str
    field: str
    """What says so: ``limit``, ``borrowingLimit``, or ``lending`` of other queues."""
    amount: int
    """The most that may be used."""
    used: int
    asked: int

    @property
    def short(self) -> int:
        """Return how much is missing."""
        return self.used + self.asked - self.amount


def _ceilings(spec: QueueSpec, guaranteed: Amounts) -> dict[str, Ceiling]:
    found = {name: Ceiling(most, "limit") for name, most in amounts_of(spec.limit).items()}
    for name, most in amounts_of(spec.borrowing_limit).items():
        total = in_all(guaranteed, name) + most
        if name not in found or total < found[name].amount:
            found[name] = Ceiling(total, "borrowingLimit")
    return found


def in_all(guaranteed: Mapping[str, int], resource: str) -> int:
    """Return the most of a resource that may be held by what is guaranteed."""
    most = guaranteed.get(resource, 0)
    if resource != GPU:
        return most
    return max(most, sum(a for r, a in guaranteed.items() if r.startswith(MODEL_PREFIX)))
