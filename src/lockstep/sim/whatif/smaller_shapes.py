"""What smaller shape of a job would start now: fewer pods, or less of its GPUs in each pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import msgspec

from lockstep.api import quantity
from lockstep.api.names import CPU, GPU, GPU_CARDS, GPU_COMPUTE, GPU_MEMORY
from lockstep.api.wire import Json
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import InitialCluster, InputError
from lockstep.sim.input.jobs import Job, read_jobs

COUNTS = frozenset((GPU, GPU_CARDS))
AMOUNTS = frozenset((GPU_COMPUTE, GPU_MEMORY))
HALVES = tuple(Fraction(1, 2**n) for n in (1, 2, 3))
"""Parts of a share that are tried."""


class Less(NamedTuple):
    """What a pod asks for of one resource: milli-CPUs for cpu, else whole workloads."""

    resource: str
    amount: int
    instead: int


@dataclass(frozen=True, slots=True)
class SmallerRole:
    """A role that is less than what was asked for."""

    role: str
    pods: int
    instead: int
    each: tuple[Less, ...]
    """What its pods ask for less of."""


@dataclass(frozen=True, slots=True)
class Smaller:
    """A shape with which a job would start now."""

    roles: tuple[SmallerRole, ...]
    """Those that differ from what was asked for."""
    gpus: float
    """GPUs of all pods, shares as fractions."""
    instead: float


@dataclass(frozen=True, slots=True)
class Found:
    """The smaller shapes there are."""

    shapes: tuple[Smaller, ...]
    """The nearest to what was asked for first: those with the most GPUs."""
    tried: tuple[str, ...]
    """In words, the ways to be smaller that were tried."""


class _Cut(NamedTuple):
    """A part of what pods ask for of some resources."""

    part: Fraction
    resources: frozenset[str]


WHOLE = _Cut(Fraction(1), frozenset())


def smaller(world: InitialCluster, works: Sequence[Job], obj: Json) -> Found:
    """Return the smaller shapes of a job with which it would start now, behind *works*.

    Pods are taken from one role at a time. All roles ask for less a pod in the same proportion: of
    GPUs first, and then of all else with them. None is found that another exceeds in both ways, and
    none that the job's parallelism or framework rules out.

    Raises:
        InputError: when the job is not what its kind says.
    """
    search = _Search(world, works, obj)
    sizes = [_size(obj, role) for role in _roles(obj)]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    tried = [f"fewer pods of {role['name']}" for role in _roles(obj) if _size(obj, role) > 1]
    tried += _ways(obj)
    shapes = []
    for number, size in enumerate(sizes):
        best = search.most(number, WHOLE, 0, size)
        if best is not None:
            shapes.append(search.shape(number, WHOLE, best))
        if number != largest:
            continue
        above = best or 0
        for cut in _cuts(obj):
            more = search.most(number, cut, above, size + 1)
            if more is not None:
                shapes.append(search.shape(number, cut, more))
                above = more
    return Found(tuple(sorted(shapes, key=lambda one: -one.gpus)), tuple(tried))


class _Search:
    """Shapes of one job, tried one after the other in the same present."""

    def __init__(self, world: InitialCluster, works: Sequence[Job], obj: Json) -> None:
        self._world, self._works, self._obj = world, works, obj
        self._present: Simulation | None = None
        self._gpus = self._read(obj).gpus

    def most(self, role: int, cut: _Cut, above: int, below: int) -> int | None:
        """Return with how many pods, between two numbers, it would start now; None: with none."""
        # The fewest first: most shapes that are no help are known after one try.
        best = self._first(role, cut, range(above + 1, below))
        if best is None or not self._starts(role, cut, best):
            return None
        low, high = best, below
        while high - low > 1:
            middle = (low + high) // 2
            # It cannot be of every size: the largest one that it can be stands for those above.
            tried = self._first(role, cut, range(middle, low, -1))
            if tried is None:
                low = middle
            elif self._starts(role, cut, tried):
                low, best = middle, tried
            else:
                high = tried
        return best

    def shape(self, role: int, cut: _Cut, pods: int) -> Smaller:
        """Return one of the shapes, held against what was asked for."""
        shaped = _shaped(self._obj, role, cut, pods)
        return Smaller(_changes(self._obj, shaped), self._read(shaped).gpus, self._gpus)

    def _first(self, role: int, cut: _Cut, sizes: Iterable[int]) -> int | None:
        """Return the first of some sizes that the job can be of."""
        for pods in sizes:
            with suppress(InputError):  # such as a world size that its parallelism does not divide
                self._read(_shaped(self._obj, role, cut, pods))
                return pods
        return None

    def _starts(self, role: int, cut: _Cut, pods: int) -> bool:
        if self._present is None:
            self._present = Simulation(self._world, self._works, Options(until=0.0))
            self._present.run()
        started, alone = self._present.attempt(self._read(_shaped(self._obj, role, cut, pods)))
        if not alone:
            self._present = None
        return started

    def _read(self, obj: Json) -> Job:
        (work,) = read_jobs([obj], self._world)
        return work


def _shaped(obj: Json, role: int, cut: _Cut, pods: int) -> Json:
    """Return a job with so many pods of a role, and part of what all its pods ask for."""
    # Through JSON, since what a YAML anchor made one object would be cut twice.
    shaped: Json = msgspec.json.decode(msgspec.json.encode(obj))
    for one in _roles(shaped):
        asked = _asked(one)
        for amounts in _amounts(one):
            for name in cut.resources & amounts.keys():
                amounts[name] = _text(name, ceil(_number(name, amounts[name]) * cut.part))
        processes = one.get("processesPerNode")
        if processes is not None and cut.resources & COUNTS & asked.keys():
            one["processesPerNode"] = ceil(processes * cut.part)
    chosen, field = _roles(shaped)[role], _field(obj)
    chosen[field] = pods
    for bound in ("min", "max", "desired"):
        if chosen.get(bound) is not None:
            chosen[bound] = min(chosen[bound], pods)
    return shaped


def _changes(obj: Json, shaped: Json) -> tuple[SmallerRole, ...]:
    """Return how the roles of a job differ."""
    found = []
    for before, after in zip(_roles(obj), _roles(shaped), strict=True):
        asked, left = _asked(before), _asked(after)
        each = tuple(
            Less(name, left[name], amount) for name, amount in asked.items() if left[name] < amount
        )
        pods, instead = _size(shaped, after), _size(obj, before)
        if each or pods < instead:
            found.append(SmallerRole(before["name"], pods, instead, each))
    return tuple(found)


def _cuts(obj: Json) -> Iterator[_Cut]:
    """Yield in which ways its pods may ask for less, the least of a change first."""
    asked = [_asked(role) for role in _roles(obj)]
    names = frozenset(name for one in asked for name in one)
    most = max((one[name] for one in asked for name in COUNTS & one.keys()), default=1)
    cuts = [(Fraction(size, most), COUNTS & names) for size in _sizes(most)]
    if AMOUNTS & names:
        cuts += [(part, AMOUNTS & names) for part in HALVES]
    rest = names - COUNTS - AMOUNTS
    for part, resources in sorted(cuts, key=lambda cut: -cut[0]):
        yield _Cut(part, resources)
        if rest:
            yield _Cut(part, resources | rest)


def _ways(obj: Json) -> list[str]:
    """Return these ways in words."""
    names = {name for cut in _cuts(obj) for name in cut.resources}
    ways = ["fewer GPUs in each pod"] if names & COUNTS else []
    ways += ["smaller shares of GPUs"] if names & AMOUNTS else []
    if names - COUNTS - AMOUNTS:
        ways[-1] += ", alone and with all else in proportion"
    return ways


def _sizes(most: int) -> list[int]:
    """Return the divisors of a number and the powers of two below it, the largest first."""
    return [n for n in range(most - 1, 0, -1) if most % n == 0 or n & (n - 1) == 0]


# How a job is written.


def _roles(obj: Json) -> list[Json]:
    """Return the parts of a job that have sizes."""
    roles: list[Json] = obj["spec"]["roles" if obj["kind"] == "TrainingJob" else "groups"]
    return roles


def _field(obj: Json) -> str:
    return "replicas" if obj["kind"] == "TrainingJob" else "min"


def _size(obj: Json, role: Json) -> int:
    return role.get(_field(obj)) or 1


def _amounts(role: Json) -> Iterator[Json]:
    """Yield all that the containers of a role's pods ask for, by resource."""
    spec = role["template"].get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        yield from (resources[key] for key in ("limits", "requests") if resources.get(key))


def _asked(role: Json) -> dict[str, int]:
    """Return the most that a container of a role's pods asks for, by resource."""
    found: dict[str, int] = {}
    for amounts in _amounts(role):
        for name, amount in amounts.items():
            found[name] = max(found.get(name, 0), _number(name, amount))
    return found


def _number(name: str, amount: str | int | float) -> int:
    return quantity.to_milli(amount) if name == CPU else quantity.to_int(amount)


def _text(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)
