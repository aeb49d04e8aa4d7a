"""How a simulation runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.runtime.clock import ROUNDS
from lockstep.sim.input.faults import Faults

NO_FAULTS = Faults()


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulation runs."""

    seed: int = 0
    until: float = inf
    """Seconds after which the simulation stops, also with jobs left."""
    period: float = 0.0
    """Decisions are made at multiples of so many seconds; 0: after every event."""
    faults: Faults = NO_FAULTS
    defrag: DefragmentationPolicy | None = None
    """By which running jobs are moved for the queues that do not say so themselves."""
    rounds: int = ROUNDS
    """Rounds of decisions at one moment, after which it is an error that there is more."""
