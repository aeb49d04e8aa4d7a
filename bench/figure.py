"""One measured figure and what it is held against."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

SAME_RUN = "same run"
EARLIER = "measured earlier on the same kind of machine"
"""For programs that cannot be built from public modules."""


class NotMeasured(Exception):
    """A benchmark cannot run on this machine; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, its unit, and its limit or its peer.

    ``limit`` is the bar that the figure must keep; ``peer`` is what somebody else's program, or the
    naive way, reaches. ``source`` says where the peer's figure comes from: "same run", or a
    published measurement.
    """

    name: str
    value: float
    unit: str
    better: Literal["higher", "lower"] = "higher"
    limit: float | None = None
    peer: float | None = None
    peer_name: str = ""
    source: str = ""

    @property
    def met(self) -> bool | None:
        """Return whether the limit is kept; None where there is none."""
        if self.limit is None:
            return None
        return self.value >= self.limit if self.better == "higher" else self.value <= self.limit

    @property
    def ratio(self) -> float | None:
        """Return how many times better than the peer the figure is; None without a peer."""
        if not self.peer or not self.value:
            return None
        return self.value / self.peer if self.better == "higher" else self.peer / self.value

    def beside(self, name: str, value: float, source: str = SAME_RUN) -> Figure:
        """Return this figure held against the peer *name*, which reaches *value*."""
        return replace(self, peer=value, peer_name=name, source=source)

    def as_json(self) -> dict[str, Any]:
        """Return the figure with its verdict and ratio as plain data."""
        return {**asdict(self), "met": self.met, "ratio": self.ratio}
