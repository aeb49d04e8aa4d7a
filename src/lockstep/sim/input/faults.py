"""What goes wrong in a simulation, and when: drawn from a seed, the same in every run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import inf

from lockstep.api.core import Node
from lockstep.api.selectors import LabelMatch

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Faults:
    """Rates of what goes wrong; times are means of exponential distributions, in hours."""

    node_mtbf: float = inf
    """Hours that one node works between two failures."""
    node_repair: float = 2.0
    """Hours until a failed node is back."""
    spot_mtbf: float = inf
    """Hours between two reclaims of one spot node."""
    spot_return: float = 1.0
    """Hours until a reclaimed node is back."""
    spot: LabelMatch | None = None
    """Which nodes are spot nodes; none where there is no selector."""
    gpu_mtbf: float = inf
    """Hours of one GPU's work after which a job breaks by itself: software, a bad step, a link."""
    restart_cost: float = 120.0
    """Seconds from the start of a job's pods until it makes progress again after a restart."""
    checkpoint_interval: float = 1800.0
    """Seconds of work between two checkpoints; what was done since the last one is lost."""


class Dice:
    """Draws the next fault of nodes and jobs."""

    def __init__(self, faults: Faults, seed: int) -> None:
        self.faults = faults
        self._rng = random.Random(seed)  # noqa: S311 - a simulation, not a secret

    def node_fails(self, node: Node) -> float:
        """Return in how many seconds a node that works now goes away; ``inf``: never."""
        mtbf = self.faults.spot_mtbf if self.is_spot(node) else self.faults.node_mtbf
        return self._after(mtbf)

    def node_returns(self, node: Node) -> float:
        """Return in how many seconds a node that went away is back."""
        faults = self.faults
        return self._after(faults.spot_return if self.is_spot(node) else faults.node_repair)

    def job_breaks(self, gpus: int) -> float:
        """Return in how many seconds a running job of so many GPUs breaks by itself."""
        return self._after(self.faults.gpu_mtbf / gpus) if gpus else inf

    def is_spot(self, node: Node) -> bool:
        """Return whether a node may be reclaimed."""
        spot = self.faults.spot
        return spot is not None and spot.matches(node.metadata.labels)

    def _after(self, hours: float) -> float:
        return self._rng.expovariate(1 / (hours * HOUR)) if hours != inf else inf
