"""What moving a simulated job costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep.scheduler.core.defrag.movers import elastic
from lockstep.scheduler.core.lost_work import checkpointed
from lockstep.scheduler.core.units import Unit, UnitKey
from lockstep.sim.running import Run


@dataclass(frozen=True, slots=True)
class Costs:
    """What the simulation would take from a job that moves."""

    runs: Mapping[UnitKey, Run]
    epoch: float

    def seconds(self, unit: Unit, now: float) -> float | None:
        """Return the seconds of work since the last simulated checkpoint, and of a restart."""
        run = self.runs.get(unit.key)
        if run is None or not (checkpointed(unit) or elastic(unit)):
            return None
        return run.at_stake(now - self.epoch)

    def pause(self) -> float:
        """Return nothing: a simulated job goes on without the members that move."""
        return 0.0
