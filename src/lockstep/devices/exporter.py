"""The metrics of this node's cards, with the pods that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.api.core import Pod
from lockstep.devices import attribution
from lockstep.devices.core.exposition import Compat, Shown, exposition
from lockstep.devices.core.holders import holders
from lockstep.devices.watching import Watch


class Exporter:
    """Makes the text of ``/metrics`` when it is asked for."""

    def __init__(
        self,
        watch: Watch,
        pods: Callable[[], Iterable[Pod]],
        hostname: str,
        compat: Compat = "",
        shares: Callable[[], bytes] = bytes,
    ) -> None:
        self._shares = shares
        self._watch, self._pods = watch, pods
        self._hostname, self._compat = hostname, compat

    def shown(self) -> list[Shown]:
        """Return each card that can be read, with its holders."""
        held = holders(self._pods())
        found = []
        for card, sample in self._watch.samples():
            mine = held.get(card.index, []) if card.resource == "nvidia.com/gpu" else []
            used = attribution.uses(sample.processes, mine) if len(mine) > 1 else {}
            found.append(Shown(card, sample.values, tuple(mine), used))
        return found

    def text(self) -> bytes:
        """Return all metrics."""
        return exposition(self.shown(), self._hostname, self._compat) + self._shares()
