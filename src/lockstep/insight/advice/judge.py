"""Verdicts over the evidence of a job, the largest gain first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from lockstep.insight.advice.causes import CAUSES, Cause
from lockstep.insight.advice.evidence import Evidence

WORTH: Final = 0.08
"""Part of a step that a cause must take to be told: below it a change is not worth a look."""
SURE: Final = 0.6
"""Confidence below which a cause is suspected, not found."""
FEWEST_STEPS: Final = 20
_PER_OPERATION: Final = 4e-6
"""Seconds that starting one operation takes from Python."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One cause. ``gain`` is the part of a step's time that goes once it is mended."""

    cause: Cause
    gain: float
    confidence: float
    evidence: tuple[str, ...]
    line: str = ""
    patch: str = ""
    number: int = 0
    """What the experiment sets: workers, samples of a batch, CPUs."""
    proved: bool | None = None
    """What the experiment said; None while there was none."""
    measured: float | None = None
    """The gain that a clone of the job had."""

    @property
    def suspected(self) -> bool:
        """Say whether it takes more to be sure."""
        if self.proved is not None:
            return not self.proved
        return self.confidence < SURE

    @property
    def expected(self) -> float:
        """Return the gain to count on: that of the clone where there was one."""
        return self.gain if self.measured is None else self.measured


@dataclass(frozen=True, slots=True)
class Advice:
    """Verdicts in order of gain, and whether the GPU is idle or busy with little to show."""

    state: str
    step: float
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)


def judge(evidence: Evidence) -> Advice:
    """Return what makes the job of *evidence* slow."""
    if not evidence.ranks or not evidence.steps:
        held = list(_held(evidence))
        note = "no steps were seen: the job has not begun, or its steps use no torch optimizer"
        return Advice("unknown", 0.0, tuple(held), (note,))
    found = [*_input(evidence), *_main(evidence), *_ranks(evidence), *_device(evidence)]
    shy = min(1.0, evidence.steps / FEWEST_STEPS)
    found = [replace(one, confidence=round(one.confidence * shy, 2)) for one in found]
    found = [one for one in found if one.gain >= WORTH]
    found.sort(key=lambda one: -one.gain)
    return Advice(_state(evidence), evidence.step, tuple(found))


def _state(e: Evidence) -> str:
    """Say first whether the GPU is idle, or busy but inefficient."""
    sm = e.gpu.sm if e.gpu.sm is not None else e.gpu.busy
    stalled = e.wait + e.starting + e.saving + e.phases.get("logging", 0)
    if sm is not None and sm >= 0.5:
        return "busy" if (e.gpu.tensor or 0) >= 0.3 else "busy but inefficient"
    return "idle" if stalled >= WORTH else "busy"


def _percent(part: float) -> str:
    return f"{part * 100:.0f} %"


def _sure(part: float) -> float:
    """Confidence in what takes *part* of a step: 0.6 at what is worth a look, 0.95 from 0.4 on."""
    return min(0.95, 0.55 + max(0.0, part))


# Input


def _input(e: Evidence) -> Iterator[Verdict]:
    if e.starting >= WORTH:
        words = f"{_percent(e.starting)} of the time workers start or wait for their first batch"
        yield _verdict("cold-workers", e.starting, (words,), e.lines.get("input", ""))
    if e.wait < WORTH / 2 or not e.fetch.wall:
        return
    waits = f"{_percent(e.wait)} of a step waits for the loader"
    line = e.lines.get("fetch") or e.lines.get("input", "")
    workers = e.loader.workers if e.loader else 0
    busy = e.fetch.wall / (workers * e.wall) if workers else 1.0
    if workers and busy < 0.6:
        words = f"its {workers} workers are busy {_percent(busy)} of the time"
        yield _verdict("cold-workers", e.wait, (waits, words), line)
        return
    gain, wanted = _with_workers(e, workers)
    source = _source(e, waits, line)
    if gain >= 0.6 * e.wait and not (workers and source.cause in _STORAGE):
        words = f"{workers} workers load, {e.cores:g} CPUs are there, " + _mix(e)
        yield _verdict("few-workers", gain, (waits, words), line, wanted)
        # What is left when workers load beside the step.
        source = replace(source, gain=source.gain - gain)
    yield source


_STORAGE: Final = ("remote-storage", "slow-storage", "small-files")


def _mix(e: Evidence) -> str:
    f = e.fetch
    return (
        f"a batch takes {f.wall / max(1.0, f.batches) * 1000:.0f} ms to get: "
        f"{_percent(f.part(f.user + f.system))} CPU, {_percent(f.part(f.waiting))} waiting, "
        f"{_percent(f.part(f.queued))} without a CPU"
    )


def _with_workers(e: Evidence, workers: int) -> tuple[float, int]:
    """Return the gain of enough workers, and how many that are.

    Waiting overlaps without limit, up to 16 of them; work only as far as there are CPUs beside
    that of the rank itself.
    """
    each = e.fetch.wall / max(1.0, e.fetch.batches) / e.step  # in steps
    cpu = e.fetch.part(e.fetch.user + e.fetch.system + e.fetch.queued)
    rest = max(1e-6, 1 - e.wait)
    wanted = min(16, max(workers + 1, 1 + int(each / rest)))
    free = max(0.5, e.cores - min(1.0, rest))
    lasts = max(each / wanted, each * cpu / free, rest)
    return max(0.0, 1 - lasts), wanted


def _source(e: Evidence, waits: str, line: str) -> Verdict:
    """Return why a batch takes so long to get."""
    f = e.fetch
    samples = max(1.0, f.samples)
    words = _mix(e)
    opens, size = f.opens / samples, f.bytes / max(1.0, f.opens)
    work = f.part(f.user + f.system)
    if opens >= 8 and size < 256 * 1024 and f.part(f.system + f.waiting) >= 0.3:
        more = f"each sample opens {opens:.0f} files of {size / 1024:.1f} KiB"
        return _verdict("small-files", e.wait, (waits, words, more), line)
    if e.throttled >= 0.2 and f.part(f.queued) >= f.part(f.waiting):
        more = f"the CPU limit ran out in {_percent(e.throttled)} of its periods"
        cores = max(1, round(e.cores * 2))
        return _verdict("cpu-quota", e.wait * 0.8, (waits, words, more), line, cores)
    if f.part(f.waiting) >= 0.5:
        return _storage(e, waits, words, line)
    if f.part(f.queued) > max(work, 0.4) and e.throttled < 0.05:
        return _verdict("neighbour", e.wait * f.part(f.queued), (waits, words), line)
    return _verdict("cpu-in-loading", e.wait, (waits, words), line)


def _storage(e: Evidence, waits: str, words: str, line: str) -> Verdict:
    f = e.fetch
    remote = f.connects / max(1.0, f.samples) >= 0.05 or f.remote_opens >= 0.5 * max(1.0, f.opens)
    rate = f.bytes / max(1e-9, f.waiting) / 2**20
    size = f.bytes / max(1.0, f.connects or f.opens)
    more = f"{size / 1024:.0f} KiB a read at {rate:.1f} MiB/s"
    # A medium that is slow is slow by the byte; a far one lets each read wait, large or small.
    if remote and size < 4 * 2**20:
        return _verdict("remote-storage", e.wait, (waits, words, more), line)
    return _verdict("slow-storage", e.wait, (waits, words, more), line)


def _verdict(
    cause: Cause, gain: float, evidence: tuple[str, ...], line: str = "", number: int = 0
) -> Verdict:
    patch = CAUSES[cause].patch.replace("{n}", str(number or "N"))
    kept = tuple(filter(None, evidence))
    gain = max(0.0, min(1.0, gain))
    return Verdict(cause, round(gain, 4), _sure(gain), kept, line, patch, number)


# What the main thread does


def _main(e: Evidence) -> Iterator[Verdict]:
    phases = e.phases
    saving = max(e.saving, phases.get("checkpoint", 0.0))
    words = f"{_percent(saving)} of the time goes into saving"
    yield _verdict("checkpoints", saving, (words,), e.lines.get("checkpoint", ""))
    logging = phases.get("logging", 0.0)
    words = f"the main thread is logging in {_percent(logging)} of looks at it"
    yield _verdict("logging", logging, (words,), e.lines.get("logging", ""))
    collective = phases.get("collective", 0.0) if e.ranks > 1 else 0.0
    metrics = phases.get("metrics", 0.0) + collective
    which = "collective" if collective >= phases.get("metrics", 0.0) else "metrics"
    words = f"{_percent(metrics)} of the time is spent on metrics, outside the gradients"
    yield _verdict("metrics", metrics, (words,), e.lines.get(which, ""))
    if e.throttled >= 0.3 and e.wait < 0.3:
        words = f"the CPU limit ran out in {_percent(e.throttled)} of its periods"
        cores = max(1, round(e.cores * 2))
        yield _verdict("cpu-quota", min(0.5, e.throttled / 2), (words,), "", cores)
    yield from _little(e)


def _little(e: Evidence) -> Iterator[Verdict]:
    """A step with little to compute: as much time goes into starting operations as into them."""
    if e.profile is None or not e.profile.operations or not e.loader:
        return
    short = e.profile.short / e.profile.operations
    overhead = e.profile.operations * _PER_OPERATION / e.step
    idle = max(0.0, e.compute - e.talk - e.straggling - e.profile.work / e.step)
    part = min(e.compute, overhead + idle)
    others = e.wait + e.starting + e.saving + e.talk + e.straggling
    others += e.phases.get("logging", 0.0) + e.phases.get("collective", 0.0)
    if short < 0.7 or part < 0.5 or others > 0.3:
        return
    words = (
        f"{e.profile.operations:.0f} operations a step, {_percent(short)} of them shorter than "
        "20 µs"
    )
    yield _verdict("small-batch", part / 2, (words,), "", 2 * max(1, e.loader.batch))


# Ranks


def _ranks(e: Evidence) -> Iterator[Verdict]:
    own = max(0.0, e.talk - e.phases.get("collective", 0.0))
    words = f"{_percent(own)} of a step every rank waits for collectives"
    yield _verdict("communication", own, (words,))
    # A rank that comes late for want of data is slow for that.
    late = max(0.0, e.straggling - e.wait - e.starting)
    words = f"the others wait {_percent(e.straggling)} of a step for rank {e.slowest}"
    yield _verdict("straggler", late, (words,))


# The GPU


def _held(e: Evidence) -> Iterator[Verdict]:
    if e.gpu.busy is not None and e.gpu.busy < 0.01 and (e.gpu.memory or 0) > 0.01:
        yield replace(
            _verdict("idle-hold", 1.0, ("memory of the GPU is held, no kernel runs",)),
            confidence=0.9,
        )


def _device(e: Evidence) -> Iterator[Verdict]:
    yield from _held(e)
    if e.gpu.throttled:
        words = f"the clock was held down {_percent(e.gpu.throttled)} of the time"
        yield _verdict("throttling", e.gpu.throttled / 2, (words,))
    if e.gpu.neighbours and (e.gpu.busy or 0) > 0.9:
        words = f"{e.gpu.neighbours} pods of other gangs are on the same card"
        yield _verdict("neighbour", 0.5, (words,))
    p = e.profile
    if p is None or not p.kernels:
        return
    copies = p.pageable_seconds / e.step
    words = f"{_percent(copies)} of a step copies from pageable memory"
    yield _verdict("unpinned-memory", copies / 2, (words,), e.lines.get("copy", ""))
    copies = p.pinned_seconds / e.step * e.phases.get("copy", 0.0)
    words = f"the host waits for copies in {_percent(e.phases.get('copy', 0.0))} of looks at it"
    yield _verdict("blocking-copies", copies, (words,), e.lines.get("copy", ""))
    busy = p.kernel_seconds / e.step
    idle = max(0.0, e.compute - busy)
    if p.syncs >= 1:
        words = f"{p.syncs:.0f} waits of the host for the GPU in a step"
        yield _verdict("synchronising", idle * 0.5, (words,), e.lines.get("sync", ""))
    if p.kernel_micros < 10 and p.kernels > 100:
        words = f"{p.kernels:.0f} kernels a step, half of them under {p.kernel_micros:.0f} µs"
        yield _verdict("small-kernels", idle, (words,))
    if busy > 0.5 and p.tensor_seconds < 0.05 * p.kernel_seconds:
        words = "no kernel used the tensor cores"
        yield _verdict("no-tensor-cores", busy * 0.5, (words,))
