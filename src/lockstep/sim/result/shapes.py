"""Jobs that are alike but for their names: one stands for all where only their pods matter."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from lockstep.api.core import Pod
from lockstep.sim.input.jobs import Job
from lockstep.sim.result.columns import Distinct


class Shape(NamedTuple):
    """Some members of a job."""

    work: Job
    pods: Sequence[Pod]


class StandingShapes:
    """The different shapes that there were, numbered."""

    def __init__(self) -> None:
        self._numbers = Distinct[bytes]()
        self._shapes: list[Shape] = []

    def __getitem__(self, number: int) -> Shape:
        """Return the first of the shape of this number."""
        return self._shapes[number]

    def number(self, work: Job, pods: frozenset[str]) -> int:
        """Return the number of these members of a job."""
        chosen = [pod for pod in work.pods if pod.metadata.name in pods]
        alike = msgspec.json.encode((work.gang.spec, [pod.spec for pod in chosen]))
        number = self._numbers.number(blake2b(alike, digest_size=16).digest())
        if number == len(self._shapes):
            self._shapes.append(Shape(work, chosen))
        return number
