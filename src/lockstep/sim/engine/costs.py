"""What moving a simulated job costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep.scheduler.core.defrag.candidates import elastic
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.preemption.lost_work import checkpointed
from lockstep.sim.engine.job_run import JobRun


@dataclass(frozen=True, slots=True)
class SimulatedCosts:
    """What the simulation would take from a job that moves."""

    runs: Mapping[WorkloadKey, JobRun]
    epoch: float

    def seconds(self, workload: Workload, now: float) -> float | None:
        """Return the seconds of work since the last simulated checkpoint, and of a restart."""
        run = self.runs.get(workload.key)
        if run is None or not (checkpointed(workload) or elastic(workload)):
            return None
        return run.at_stake(now - self.epoch)

    def pause(self) -> float:
        """Return nothing: a simulated job goes on without the members that move."""
        return 0.0
