"""One job while it is simulated: its members, its speed, the work that is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import count
from math import inf

from msgspec.structs import replace

from lockstep.api import duration
from lockstep.api.core import Pod
from lockstep.api.names import GANG_GROUP_LABEL
from lockstep.scheduler.core.resources.device_allocation import Spot, annotations_of
from lockstep.scheduler.core.util.bitmask import indices_of
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.jobs import Job
from lockstep.sim.result.job_records import JobRecord
from lockstep.sim.result.placements_log import Stay

_VERSIONS = count(1)


class JobRun:
    """A job that has arrived and not ended.

    It makes progress when every group has its minimum, in proportion to the GPUs of the members
    that are there, or to the members where none has GPUs: half of an elastic job takes twice as
    long.
    """

    def __init__(self, work: Job, life: JobRecord, faults: Faults, now: float) -> None:
        self.life = life
        self.work = work
        self.standing: dict[str, tuple[Spot, float]] = {}
        """Where its placed pods are, and since when."""
        self._faults = faults
        self._pods = {pod.metadata.name: pod for pod in work.pods}
        self._numbers = dict(zip(self._pods, work.ranks, strict=True))
        self._group = {
            name: pod.metadata.labels.get(GANG_GROUP_LABEL, "") for name, pod in self._pods.items()
        }
        shares = work.pod_gpus if work.gpus else (1.0,) * len(work.pods)
        self._share = dict(zip(self._pods, shares, strict=True))
        """What each pod does of the work, by its GPUs."""
        self._minimum = _minimum(work)
        self._since = now
        runtime = inf if self.work.runtime is None else self.work.runtime
        self._left = max(0.0, runtime - self.work.elapsed)
        self._unsaved = self._unsaved_gpus = self._older_gpus = 0.0
        """What was done since the last checkpoint: seconds of work, and GPU-seconds of it since
        and before the start of the simulation."""
        stated = work.gang.spec.checkpoint
        own = stated.interval if stated is not None else None
        self._interval = faults.checkpoint_interval if own is None else duration.parse(own)
        self._starting = 0.0
        """Seconds until the job makes progress, after a restart."""
        self.gpus = 0
        """Cards that its pods are on, by which it breaks."""
        self.held = 0.0
        """GPUs that its pods hold, shares as fractions, by which its work counts."""

    @property
    def speed(self) -> float:
        """Return the progress in seconds of work a second; 0 while it cannot run."""
        if self.complete:
            return 1.0
        if not self._enough(self.standing):
            return 0.0
        return sum(map(self._share.__getitem__, self.standing)) / sum(self._share.values())

    @property
    def finite(self) -> bool:
        """Return whether the job ends by itself."""
        return self._left != inf

    def remaining(self) -> float:
        """Return in how many seconds the job ends if nothing changes."""
        return self._starting + self._left / self.speed

    def fresh(self, names: Collection[str] | None = None) -> Iterator[Pod]:
        """Yield new pods for all members, or for those called *names*, without nodes."""
        for name, pod in list(self._pods.items()):
            if names is None or name in names:
                number = next(_VERSIONS)
                meta = replace(pod.metadata, uid=f"sim-{number}", resource_version=str(number))
                new = self._pods[name] = replace(pod, metadata=meta)
                yield new

    @property
    def complete(self) -> bool:
        """Return whether every member has a place."""
        return len(self.standing) == len(self._pods)

    def match(self, standing: Collection[Pod]) -> Iterator[tuple[str, Pod]]:
        """Yield which member each of *standing* is: by name, else the next of its group."""
        left = [name for name in self._pods if name not in {p.metadata.name for p in standing}]
        for there in standing:
            name = there.metadata.name
            if name not in self._pods:
                group = there.metadata.labels.get(GANG_GROUP_LABEL, "")
                one_group = len(self._minimum) == 1
                name = next((n for n in left if one_group or self._group[n] == group), "")
                left = [other for other in left if other != name]
            if name:
                yield name, there

    def stand(self, name: str, spot: Spot, now: float) -> None:
        """Note a pod's place."""
        self.standing[name] = (spot, now)
        self.gpus += spot.gpus.bit_count()

    def bound(self, name: str) -> Pod:
        """Return a pod that has its place as the API server would show it."""
        pod, (spot, _) = self._pods[name], self.standing[name]
        held = annotations_of(spot.grant)
        meta = replace(
            pod.metadata,
            annotations=pod.metadata.annotations | held,
            resource_version=str(next(_VERSIONS)),
        )
        return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=spot.node))

    def leave(self, name: str, now: float) -> Stay:
        """Take a pod off its node; return its stay there."""
        spot, since = self.standing.pop(name)
        self.gpus -= spot.gpus.bit_count()
        return self._stay(name, spot, since, now)

    def started(self, now: float) -> None:
        """Note the first moment at which the job has what it needs."""
        if self.life.started is None and self._enough(self.standing):
            self.life.started = now

    def resume(self, unsaved: float) -> None:
        """Note the seconds of work that a job which stood already had not saved at the start."""
        if self._interval:
            self._unsaved, self._older_gpus = unsaved, unsaved * self.held

    def survives(self, losing: Collection[str]) -> bool:
        """Return whether the job goes on without the pods *losing*: it is elastic enough."""
        return self._enough([name for name in self.standing if name not in losing])

    def advance(self, now: float) -> None:
        """Count the work done since the last time."""
        passed = max(0.0, now - self._since)
        self._since = now
        speed = self.speed
        if not speed:
            return
        starting = min(self._starting, passed)
        self._starting -= starting
        done = min((passed - starting) * speed, self._left)
        if done:
            self._left -= done
            self._count(done, done / speed * self.held)

    def _count(self, done: float, gpus: float) -> None:
        """Count seconds of work, which took GPU-seconds, as done since the last checkpoint."""
        self.life.useful += gpus
        # A checkpoint that is overdue is made as soon as the job goes on.
        self._unsaved = min(self._unsaved, self._interval) + done
        self._unsaved_gpus += gpus
        if self._unsaved >= self._interval:
            self._unsaved = self._unsaved % self._interval if self._interval else 0.0
            self._unsaved_gpus = gpus * self._unsaved / done
            self._older_gpus = 0.0

    def at_stake(self, now: float) -> float:
        """Return the seconds that each of its GPUs loses when the job starts anew now."""
        self.advance(now)
        return self._unsaved + self._faults.restart_cost

    def fall_back(self, now: float) -> None:
        """Go back to the last checkpoint."""
        self.advance(now)
        self.life.useful -= self._unsaved_gpus
        self.life.lost += self._unsaved_gpus + self._older_gpus
        self._left += self._unsaved
        self._unsaved = self._unsaved_gpus = self._older_gpus = 0.0
        self._starting = self._faults.restart_cost

    def open_stays(self) -> list[Stay]:
        """Return the stays that had not ended."""
        return [
            self._stay(name, spot, since, None) for name, (spot, since) in self.standing.items()
        ]

    def _stay(self, name: str, spot: Spot, since: float, end: float | None) -> Stay:
        gpus, nics = indices_of(spot.gpus), indices_of(spot.grant.nics)
        return Stay(self.work.name, name, self._numbers[name], spot.node, gpus, nics, since, end)

    def _enough(self, names: Collection[str]) -> bool:
        if len(names) == len(self._pods):
            return True
        there = Counter(self._group[name] for name in names)
        return bool(names) and all(there[g] >= least for g, least in self._minimum.items())


def _minimum(work: Job) -> dict[str, int]:
    spec = work.gang.spec
    if spec.groups:
        return {group.name: group.min for group in spec.groups}
    return {"": spec.min_member or 1}
