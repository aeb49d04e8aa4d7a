"""Pod shapes: what pods have in common as far as placing them goes.

Pods of the same shape are interchangeable, so a result for one holds for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np

from lockstep.api.core import NodeSelector, PodSpec, PreferredNodeTerm, Toleration
from lockstep.api.names import (
    CPU,
    GPU,
    GPU_CLASS_ANNOTATION,
    GPU_ISOLATION_ANNOTATION,
    MEMORY,
    NICS,
)
from lockstep.scheduler.core.resources.alignment import (
    NO_ALIGNMENT,
    RELATIONS,
    Alignment,
    DeviceAsk,
)
from lockstep.scheduler.core.resources.columns import Columns, is_port, pod_request
from lockstep.scheduler.core.resources.exact_device_fit import PodKind
from lockstep.scheduler.core.resources.gpu_shares import GpuShare, split_off
from lockstep.scheduler.core.resources.selectors import NAME_FIELD
from lockstep.scheduler.core.util.array_types import IntArray


class Whereabouts(NamedTuple):
    """Which nodes a pod may or would rather stand on."""

    selector: dict[str, str]
    required: NodeSelector | None
    preferred: list[PreferredNodeTerm]
    tolerations: list[Toleration]


@dataclass(eq=False, slots=True)
class PodShape:
    """One shape. Shapes are interned: the same object stands for equal ones."""

    id: int
    request: dict[str, int]
    selector: dict[str, str]
    required: NodeSelector | None
    preferred: list[PreferredNodeTerm]
    tolerations: list[Toleration]
    columns: IntArray
    amounts: IntArray
    weighed: IntArray = field(repr=False)
    """The columns whose use ranks nodes: resources, not ports or the number of pods."""
    key: bytes = field(repr=False)
    share: GpuShare | None = None
    """What it takes of single GPUs beside the columns."""
    alignment: Alignment = NO_ALIGNMENT
    """How close together its devices are to be, as far as that says anything about it."""
    table: Columns = field(default_factory=Columns, repr=False)
    """The columns of the node table, those of single GPUs among them."""
    goes_by_connections: bool = field(init=False)
    """Whether it matters to it how the devices of a node are connected."""

    def __post_init__(self) -> None:
        wish = self.alignment
        self.goes_by_connections = bool(wish.required or wish.preferred or self.nics)

    @property
    def asks(self) -> dict[str, int]:
        """Return all that one pod takes, shares included, for people to read."""
        return self.request | self.share.asks if self.share is not None else self.request

    @property
    def nics(self) -> int:
        """Return how many NICs one pod takes."""
        return self.request.get(NICS, 0)

    @property
    def cpu(self) -> int:
        """Return the thousandths of CPUs that one pod takes."""
        return self.request.get(CPU, 0)

    @property
    def memory(self) -> int:
        """Return the bytes of memory that one pod takes."""
        return self.request.get(MEMORY, 0)

    def strict(self, kept: Iterable[str] = RELATIONS) -> PodShape:
        """Return what it would be were it to require what it prefers, of *kept* relations alone.

        It is the shape of no pod, and shares the number of this one.
        """
        must = self.alignment.required | self.alignment.preferred.intersection(kept)
        return replace(self, alignment=Alignment(must))

    def lax(self) -> PodShape:
        """Return what it would be if its devices had better be as it requires them; likewise."""
        may = self.alignment.required | self.alignment.preferred
        return replace(self, alignment=Alignment(preferred=may))

    def ask(self, relations: frozenset[str]) -> DeviceAsk:
        """Return what one pod takes of a node's devices, with such relations between them."""
        if self.share is not None:
            return DeviceAsk(self.share.cards, self.nics, relations, shared=True)
        return DeviceAsk(self.gpus, self.nics, relations)

    @property
    def kind(self) -> PodKind:
        """Return what one pod takes of a node's single devices, as it requires them."""
        ask = self.ask(self.alignment.required)
        amounts = (self.cpu, self.memory) if "numa" in ask.relations else (0, 0)
        return PodKind(ask, self.share, *amounts)

    @property
    def gpus(self) -> int:
        """Return how many whole GPUs one pod takes."""
        return self.request.get(GPU, 0)

    @property
    def takes_gpus(self) -> bool:
        """Return whether it takes GPUs, whole or in part."""
        return self.gpus > 0 or self.share is not None

    @property
    def takes_devices(self) -> bool:
        """Return whether it takes anything that is handed out by index or by NUMA node."""
        return self.takes_gpus or self.goes_by_connections

    @property
    def whereabouts(self) -> Whereabouts:
        """Return everything that says which nodes the pod may or would rather stand on."""
        return Whereabouts(self.selector, self.required, self.preferred, self.tolerations)

    def amount(self, column: int) -> int:
        """Return how much of the resource in a column one pod takes."""
        found = self.amounts[self.columns == column]
        return int(found[0]) if len(found) else 0


class Shapes:
    """All shapes in use, each known by its content."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._by_spec: dict[bytes, PodShape] = {}
        self._by_content: dict[bytes, PodShape] = {}
        self._next = 0

    LIMIT = 20_000
    """Spellings kept; beyond it the memo starts afresh, which costs time and nothing else."""

    def of(self, spec: PodSpec, annotations: Mapping[str, str] = MappingProxyType({})) -> PodShape:
        """Return the shape of a pod."""
        alignment = Alignment.of(annotations)
        spelling = msgspec.msgpack.encode(
            (
                [(c.resources, c.ports) for c in spec.containers],
                [(c.resources, c.ports, c.restart_policy) for c in spec.init_containers],
                spec.overhead,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                alignment.spelling,
                annotations.get(GPU_ISOLATION_ANNOTATION),
                annotations.get(GPU_CLASS_ANNOTATION),
            )
        )
        found = self._by_spec.get(spelling)
        if found is None:
            if len(self._by_spec) >= self.LIMIT:
                self._by_spec.clear()
                self._by_content.clear()
            found = self._by_spec[spelling] = self._intern(spec, alignment, annotations)
        return found

    def together(self, parts: Sequence[PodShape], node: str = "") -> PodShape:
        """Return the shape of several pods that stand on one node, given or not, all of one kind.

        Raises:
            ValueError: when they ask for different nodes, or one of them for a share of a GPU.
        """
        first = parts[0]
        if any(part.share is not None for part in parts):
            raise ValueError("pods that stand together take shares of GPUs")
        if any(part.alignment.required for part in parts):
            raise ValueError("pods that stand together ask for aligned devices")
        if any(part.whereabouts != first.whereabouts for part in parts):
            raise ValueError("pods that stand together ask for different nodes")
        request: dict[str, int] = {}
        for part in parts:
            for name, value in part.request.items():
                request[name] = request.get(name, 0) + value
        selector = {**first.selector, NAME_FIELD: node} if node else first.selector
        return self._of(request, first.whereabouts._replace(selector=selector), None)

    def aligned(self, shape: PodShape, alignment: Alignment) -> PodShape:
        """Return the shape of pods that differ in how their devices are to be aligned."""
        here = _where_it_matters(alignment, shape.request, shape.share)
        if here == shape.alignment:
            return shape
        return self._of(shape.request, shape.whereabouts, shape.share, here)

    def asking(self, request: dict[str, int]) -> PodShape:
        """Return the shape of a pod of which only what it takes is known."""
        return self._of(request, Whereabouts({}, None, [], []), None)

    def _intern(
        self, spec: PodSpec, alignment: Alignment, annotations: Mapping[str, str]
    ) -> PodShape:
        request = pod_request(spec)
        share = split_off(spec, request, annotations)
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = affinity.required if affinity else None
        preferred = affinity.preferred if affinity else []
        where = Whereabouts(spec.node_selector, required, preferred, spec.tolerations)
        return self._of(request, where, share, _where_it_matters(alignment, request, share))

    def _of(
        self,
        request: dict[str, int],
        where: Whereabouts,
        share: GpuShare | None,
        alignment: Alignment = NO_ALIGNMENT,
    ) -> PodShape:
        request = dict(sorted(request.items()))
        where = where._replace(selector=dict(sorted(where.selector.items())))
        asked = share.asks if share is not None else {}
        apart = share.marks if share is not None and not share.plain else ()
        key = msgspec.msgpack.encode((request, asked, *where, alignment.spelling, *apart))
        found = self._by_content.get(key)
        if found is not None:
            return found
        columns = [self._columns.id(name) for name in request]
        weighed = [
            column
            for column, name in zip(columns, request, strict=True)
            if name != "pods" and not is_port(name)
        ]
        self._next += 1
        shape = PodShape(
            id=self._next,
            request=request,
            selector=where.selector,
            required=where.required,
            preferred=where.preferred,
            tolerations=where.tolerations,
            columns=np.array(columns, dtype=np.int64),
            amounts=np.array(list(request.values()), dtype=np.int64),
            weighed=np.array(weighed or [self._columns.id("pods")], dtype=np.int64),
            key=key,
            share=share,
            alignment=alignment,
            table=self._columns,
        )
        self._by_content[key] = shape
        return shape


def _where_it_matters(
    alignment: Alignment, request: Mapping[str, int], share: GpuShare | None
) -> Alignment:
    cards = share.cards if share is not None else request.get(GPU, 0)
    host = bool(request.get(CPU) or request.get(MEMORY))
    return alignment.where_it_matters(cards, request.get(NICS, 0), host=host)
