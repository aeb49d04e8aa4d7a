"""Whether pods find their devices on some nodes together: every way there is, tried one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple


class Gpu(NamedTuple):
    """A GPU of a node, and what is left of it."""

    nvlink: int
    numa: int
    root: int
    whole: bool = True
    compute: int = 100
    memory: int = 0


class Nic(NamedTuple):
    """A free NIC of a node."""

    numa: int
    root: int


class Machine(NamedTuple):
    """A node: its devices, and the CPUs left on each of its NUMA nodes."""

    gpus: tuple[Gpu, ...]
    nics: tuple[Nic, ...] = ()
    cpus: tuple[int, ...] = ()


class Wants(NamedTuple):
    """What one pod asks for: whole GPUs, or *compute* and *memory* of so many."""

    gpus: int
    nics: int = 0
    must: frozenset[str] = frozenset()
    compute: int = 0
    memory: int = 0
    cpu: int = 0

    @property
    def shared(self) -> bool:
        """Return whether it takes shares."""
        return bool(self.compute or self.memory)


@cache
def fit(machines: tuple[Machine, ...], pods: tuple[Wants, ...]) -> bool:
    """Return whether all pods find room."""
    if not pods:
        return True
    first, rest = pods[0], pods[1:]
    for place, machine in enumerate(machines):
        for left in _given(machine, first):
            if fit((*machines[:place], left, *machines[place + 1 :]), rest):
                return True
    return False


def _given(machine: Machine, pod: Wants) -> Iterator[Machine]:
    """Yield what a node has left once a pod has been given its devices, in every way."""
    open_to = [
        i
        for i, g in enumerate(machine.gpus)
        if (g.compute >= pod.compute and g.memory >= pod.memory if pod.shared else g.whole)
    ]
    for gpus in combinations(open_to, pod.gpus):
        for nics in combinations(range(len(machine.nics)), pod.nics):
            cards, wires = [machine.gpus[i] for i in gpus], [machine.nics[i] for i in nics]
            if not _together(cards, wires, pod):
                continue
            left = tuple(
                _less(gpu, pod) if i in gpus else gpu for i, gpu in enumerate(machine.gpus)
            )
            wired = tuple(nic for i, nic in enumerate(machine.nics) if i not in nics)
            if "numa" not in pod.must:
                yield Machine(left, wired, machine.cpus)
                continue
            for socket, cpus in enumerate(machine.cpus):
                if cpus >= pod.cpu and all(one.numa == socket for one in (*cards, *wires)):
                    fewer = [c - pod.cpu * (i == socket) for i, c in enumerate(machine.cpus)]
                    yield Machine(left, wired, tuple(fewer))


def _together(gpus: Sequence[Gpu], nics: Sequence[Nic], pod: Wants) -> bool:
    if "nvlink" in pod.must and len({gpu.nvlink for gpu in gpus}) > 1:
        return False
    if "pcie" not in pod.must or not gpus or not nics:
        return True
    fewer, more = (nics, gpus) if len(nics) <= len(gpus) else (gpus, nics)
    most = -(-len(more) // len(fewer))
    for root in {one.root for one in (*gpus, *nics)}:
        some, many = (sum(one.root == root for one in side) for side in (fewer, more))
        if not some <= many <= most * some:
            return False
    return True


def _less(gpu: Gpu, pod: Wants) -> Gpu:
    if not pod.shared:
        return gpu._replace(whole=False, compute=0, memory=0)
    compute, memory = gpu.compute - pod.compute, gpu.memory - pod.memory
    return gpu._replace(whole=False, compute=compute, memory=memory)
