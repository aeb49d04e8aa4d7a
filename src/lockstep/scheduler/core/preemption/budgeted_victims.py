"""What goes at once, and which victims PodDisruptionBudgets allow together: there are several ways
of spending them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.state.disruption_budgets import Allowance, Budget, Budgets

WAYS = 16
"""Ways of spending what the budgets allow that are tried before any is violated.

Each takes a search.
"""


@dataclass(frozen=True, slots=True)
class Victim:
    """Pods that go together or not at all: a gang, or one member that it can do without."""

    key: WorkloadKey
    account: Account
    members: tuple[Member, ...]
    cost: tuple[object, ...]
    whole: bool
    lost: float = 0.0
    """GPU-seconds of work that end with it."""
    priority: int = 0
    violates: tuple[Budget, ...] = ()
    """The PodDisruptionBudgets that do not allow it."""

    @property
    def gpus(self) -> int:
        """Return the GPUs that it holds whole."""
        return sum(member.shape.gpus for member in self.members)

    @property
    def size(self) -> int:
        """Return its GPUs; a pod without any counts as one."""
        return sum(member.shape.gpus or 1 for member in self.members)


def in_order(
    budgets: Budgets, chunks: Sequence[Victim], gone: Iterable[Member] = ()
) -> list[Victim]:
    """Put those last that a budget does not allow to go with those before and those *gone*."""
    if not budgets:
        return list(chunks)
    within, beyond = _spent(Allowance(budgets, gone), chunks)
    return within + beyond


Rank = Callable[[WorkloadKey], tuple[bool, float, WorkloadKey]]
"""A sort key: the gangs on which the budgets are spent first have the least."""


def spending_orders(
    budgets: Budgets, members: Mapping[WorkloadKey, Sequence[Member]]
) -> Iterator[Rank]:
    """Yield orders of gangs in which what the budgets allow may be spent on them.

    On those that free the most GPUs for each protected pod; in the later orders on those of one
    node before all others.
    """
    asked = {key: sum(budgets.asked(there).values()) for key, there in members.items()}
    dear = {
        key: asked[key] / (sum(m.shape.gpus for m in there) or 0.5)
        for key, there in members.items()
    }
    protected = sorted((key for key in asked if asked[key]), key=lambda key: (dear[key], key))
    nodes = dict.fromkeys(member.node for key in protected for member in members[key])
    for node in ["", *nodes][:WAYS]:
        there = {key for key in members if any(member.node == node for member in members[key])}
        yield partial(_rank, there, dear)


def _rank(
    there: Collection[WorkloadKey], dear: Mapping[WorkloadKey, float], key: WorkloadKey
) -> tuple[bool, float, WorkloadKey]:
    return key not in there, dear[key], key


def clean_sets(
    budgets: Budgets, chunks: Sequence[Victim], gone: Collection[Member] = ()
) -> Iterator[list[Victim]]:
    """Yield sets of chunks that violate no budget beside those *gone*, each in the order given;
    none twice.
    """
    members = dict[WorkloadKey, list[Member]]()
    for chunk in chunks:
        members.setdefault(chunk.key, []).extend(chunk.members)
    seen = set[tuple[int, ...]]()
    for rank in spending_orders(budgets, members):
        # Of one gang the members that it can do without go first, as they stand in *chunks*.
        ranked = sorted(enumerate(chunks), key=lambda one: (rank(one[1].key), one[0]))
        within, _ = _spent(Allowance(budgets, gone), [chunk for _, chunk in ranked])
        chosen = {id(chunk) for chunk in within}
        numbers = tuple(n for n, chunk in enumerate(chunks) if id(chunk) in chosen)
        if numbers not in seen:
            seen.add(numbers)
            yield [chunks[number] for number in numbers]


def _spent(allowance: Allowance, chunks: Sequence[Victim]) -> tuple[list[Victim], list[Victim]]:
    """Return the chunks that may go one after the other, and those that would violate a budget."""
    violated: dict[WorkloadKey, set[Budget]] = {}
    within, beyond = list[Victim](), list[Victim]()
    for chunk in chunks:
        hit = {*allowance.spend(chunk.members), *violated.get(chunk.key, ())}
        if hit:  # a gang goes with the members that it can do without
            violated.setdefault(chunk.key, set()).update(hit)
            named = tuple(sorted(hit, key=lambda one: (one.namespace, one.name)))
            beyond.append(replace(chunk, violates=named))
        else:
            within.append(chunk)
    return within, beyond
