"""What probes measured, as parts of a step: means over ranks, and what sets them apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

import msgspec

from lockstep.api.probes import Loader, Profile, Sheet
from lockstep.api.rendezvous import Report

_LEAST_WALL = 1e-9


@dataclass(frozen=True, slots=True)
class Fetch:
    """Getting batches, where it is done: seconds of it by what they went into, and amounts."""

    wall: float = 0.0
    user: float = 0.0
    system: float = 0.0
    queued: float = 0.0
    """Seconds in which it was ready to run and had no CPU."""
    batches: float = 0.0
    samples: float = 0.0
    opens: float = 0.0
    remote_opens: float = 0.0
    connects: float = 0.0
    bytes: float = 0.0

    @property
    def waiting(self) -> float:
        """Return the seconds of it in which neither a CPU nor a queue for one had it."""
        return max(0.0, self.wall - self.user - self.system - self.queued)

    def part(self, seconds: float) -> float:
        """Return *seconds* as a part of it."""
        return seconds / self.wall if self.wall > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Gpu:
    """What the node agent says of the job's GPUs: means, in 0..1; None where it cannot be told."""

    busy: float | None = None
    sm: float | None = None
    tensor: float | None = None
    power: float | None = None
    """Of the limit."""
    memory: float | None = None
    throttled: float = 0.0
    neighbours: int = 0
    """Pods of other gangs on the same cards."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A job over the last minute. Parts are of the time of a step, in 0..1."""

    ranks: int = 0
    steps: int = 0
    """Steps in the window, of the rank with the fewest."""
    step: float = 0.0
    """Seconds of one."""
    wait: float = 0.0
    """For the loader, without the starts of its workers."""
    starting: float = 0.0
    """Starting workers and waiting for their first batch."""
    saving: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    """Parts of the main threads' time by what sampling found them doing."""
    lines: dict[str, str] = field(default_factory=dict)
    """By phase, the line of the user's code that took most of it."""
    loader: Loader | None = None
    fetch: Fetch = field(default_factory=Fetch)
    cores: float = 1.0
    throttled: float = 0.0
    talk: float = 0.0
    """Waiting for collectives that every rank shares: that of the rank that waits least."""
    straggling: float = 0.0
    """Waiting for the slowest rank."""
    slowest: int | None = None
    profile: Profile | None = None
    gpu: Gpu = field(default_factory=Gpu)
    wall: float = 0.0

    @property
    def compute(self) -> float:
        """Return the part of a step that is neither input nor saving."""
        return max(0.0, 1 - self.wait - self.starting - self.saving)


def read(report: str) -> list[Sheet]:
    """Return the sheets in a launcher's *report*; none where it cannot be read."""
    try:
        return msgspec.json.decode(report, type=Report).probes if report else []
    except (msgspec.DecodeError, msgspec.ValidationError):
        return []


def gather(sheets: Sequence[Sheet], gpu: Gpu | None = None) -> Evidence:
    """Return what *sheets*, one of each rank, say together."""
    told = [one for one in sheets if one.sums.get("steps", 0) >= 1 and one.steps]
    if not told:
        return Evidence(gpu=gpu or Gpu())
    seconds = fmean(_step(one) for one in told)
    talk, straggling, slowest = _apart(told)
    first = [_part(one, "loader.first") for one in told]
    begun = [_part(one, "loader.starting") for one in told]
    starting = fmean(begun) + fmean(first) if _workers(told) else 0.0
    wait = fmean(_part(one, "loader.wait") for one in told)
    return Evidence(
        ranks=len(told),
        steps=int(min(one.sums["steps"] for one in told)),
        step=seconds,
        wait=max(0.0, wait - (fmean(first) if _workers(told) else 0.0)),
        starting=starting,
        saving=fmean(_part(one, "save.seconds") for one in told),
        phases=_phases(told),
        lines=_lines(told),
        loader=next((one.loader for one in told if one.loader is not None), None),
        fetch=_fetch(told),
        cores=min((one.cores for one in told if one.cores), default=1.0),
        throttled=fmean(one.throttled for one in told),
        talk=talk,
        straggling=straggling,
        slowest=slowest,
        profile=_profile(told),
        gpu=gpu or Gpu(),
        wall=fmean(_busy(one) for one in told),
    )


def _busy(sheet: Sheet) -> float:
    """What the window of the profiler took is no part of the job."""
    return max(_LEAST_WALL, sheet.wall - sheet.sums.get("profiling", 0.0))


def _step(sheet: Sheet) -> float:
    return _busy(sheet) / sheet.sums["steps"]


def _part(sheet: Sheet, name: str) -> float:
    return min(1.0, sheet.sums.get(name, 0.0) / _busy(sheet))


def _workers(sheets: Sequence[Sheet]) -> bool:
    return any(one.loader is not None and one.loader.workers for one in sheets)


def _phases(sheets: Sequence[Sheet]) -> dict[str, float]:
    found: dict[str, float] = {}
    for sheet in sheets:
        counts = {k[3:]: v for k, v in sheet.sums.items() if k.startswith("at:")}
        total = sum(counts.values())
        for name, count in counts.items():
            found[name] = found.get(name, 0.0) + count / total / len(sheets)
    return found


def _lines(sheets: Sequence[Sheet]) -> dict[str, str]:
    found: dict[str, str] = {}
    for sheet in sheets:
        for phase, lines in sheet.lines.items():
            found.setdefault(phase, next(filter(None, lines), ""))
    return found


def _fetch(sheets: Sequence[Sheet]) -> Fetch:
    def mean(name: str) -> float:
        return fmean(one.sums.get("fetch." + name, 0.0) for one in sheets)

    return Fetch(
        wall=mean("wall"),
        user=mean("user"),
        system=mean("system"),
        queued=mean("queued"),
        batches=mean("batches"),
        samples=mean("samples"),
        opens=mean("opens"),
        remote_opens=mean("remoteOpens"),
        connects=mean("connects"),
        bytes=mean("bytes"),
    )


def _profile(sheets: Sequence[Sheet]) -> Profile | None:
    found = [one.profile for one in sheets if one.profile is not None]
    return found[len(found) // 2] if found else None


def _apart(sheets: Sequence[Sheet]) -> tuple[float, float, int | None]:
    """Return the parts of a step in common communication and in waiting for the slowest rank.

    What the last to arrive waits is the communication itself; what others wait beyond it is for
    that rank.
    """
    waits = [
        (one.profile.exposed / _step(one), one.rank) for one in sheets if one.profile is not None
    ]
    if len(waits) < 2:
        return 0.0, 0.0, None
    least, rank = min(waits)
    beyond = median(part for part, _ in waits if part >= least) - least
    if len(waits) == 2:
        beyond = max(waits)[0] - least
    return min(1.0, least), max(0.0, min(1.0, beyond)), rank if beyond > 0 else None
