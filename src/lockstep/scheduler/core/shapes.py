"""Pod shapes: what pods have in common as far as placing them goes.

Pods of the same shape are interchangeable, so whatever is computed for one holds for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from lockstep.api.core import NodeSelector, PodSpec, PreferredNodeTerm, Toleration
from lockstep.api.names import GPU
from lockstep.scheduler.core.labels import NAME_FIELD
from lockstep.scheduler.core.nodes import IntArray
from lockstep.scheduler.core.resources import Columns, is_port, pod_request


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

    @property
    def gpus(self) -> int:
        """Return how many whole GPUs one pod takes."""
        return self.request.get(GPU, 0)

    @property
    def whereabouts(self) -> tuple[object, ...]:
        """Return everything that says which nodes the pod may or would rather stand on."""
        return self.selector, self.required, self.preferred, self.tolerations

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

    def of(self, spec: PodSpec) -> PodShape:
        """Return the shape of a pod."""
        spelling = msgspec.msgpack.encode(
            (
                [(c.resources, c.ports) for c in spec.containers],
                [(c.resources, c.ports, c.restart_policy) for c in spec.init_containers],
                spec.overhead,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
            )
        )
        found = self._by_spec.get(spelling)
        if found is None:
            if len(self._by_spec) >= self.LIMIT:
                self._by_spec.clear()
                self._by_content.clear()
            found = self._by_spec[spelling] = self._intern(spec)
        return found

    def together(self, parts: Sequence[PodShape], node: str = "") -> PodShape:
        """Return the shape of several pods that stand on one node, given or not, all of one kind.

        Raises:
            ValueError: when they ask for different nodes.
        """
        first = parts[0]
        if any(part.whereabouts != first.whereabouts for part in parts):
            raise ValueError("pods that stand together ask for different nodes")
        request: dict[str, int] = {}
        for part in parts:
            for name, value in part.request.items():
                request[name] = request.get(name, 0) + value
        selector = {**first.selector, NAME_FIELD: node} if node else first.selector
        return self._of(request, selector, first.required, first.preferred, first.tolerations)

    def _intern(self, spec: PodSpec) -> PodShape:
        request = pod_request(spec)
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = affinity.required if affinity else None
        preferred = affinity.preferred if affinity else []
        return self._of(request, spec.node_selector, required, preferred, spec.tolerations)

    def _of(
        self,
        request: dict[str, int],
        selector: dict[str, str],
        required: NodeSelector | None,
        preferred: list[PreferredNodeTerm],
        tolerations: list[Toleration],
    ) -> PodShape:
        request, selector = dict(sorted(request.items())), dict(sorted(selector.items()))
        key = msgspec.msgpack.encode((request, selector, required, preferred, tolerations))
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
            selector=selector,
            required=required,
            preferred=preferred,
            tolerations=tolerations,
            columns=np.array(columns, dtype=np.int64),
            amounts=np.array(list(request.values()), dtype=np.int64),
            weighed=np.array(weighed or [self._columns.id("pods")], dtype=np.int64),
            key=key,
        )
        self._by_content[key] = shape
        return shape
