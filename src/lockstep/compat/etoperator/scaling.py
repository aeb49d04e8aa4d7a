"""ScaleIn and ScaleOut: one step at a time, so that a crash between two loses and doubles nothing.

A scaler first claims the job, then records which workers come or go, then changes the job's target,
and lets go of the job when the workers are there or gone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json
from lockstep.compat.etoperator import job as jobs
from lockstep.compat.etoperator.objects import Amount, ScaleSpec
from lockstep.compat.translation import Refused, read

OUT: Final = "ScaleOut"
OVER: Final = ("ScaleSucceeded", "ScaleFailed")


@dataclass(frozen=True, slots=True)
class Step:
    """What to write next: into the job's status, or else the scaler's own."""

    of_job: Json | None = None
    own: Json | None = None


def step(
    scaler: AnyObject, job: AnyObject | None, native: TrainingJob | None, others: Collection[str]
) -> Step:
    """Return the next step of *scaler*; *others* are the scalers that are there, by their keys."""
    me, phase = key(scaler), scaler.status.get("phase", "")
    holder = str(job.status.get("currentScaler", "")) if job is not None else ""
    if phase in OVER:
        return Step(of_job={"currentScaler": None}) if holder == me else Step()
    try:
        spec = read(scaler.spec, ScaleSpec)
        if job is None:
            return _says(scaler, "Created", f"no TrainingJob {spec.selector.name!r} is there")
        if job.status.get("completionTime"):
            raise Refused("spec.selector.name", spec.selector.name, "the job is over")
        if holder != me:
            if holder in others:
                return _says(scaler, "Created", f"waits for {holder}")
            return Step(of_job={"currentScaler": me})
        if phase != "Scaling":
            named = _choose(scaler, job, spec)
            return Step(own={"phase": "Scaling", "message": None, _field(scaler): named})
        return _apply(scaler, job, native)
    except Refused as refused:
        return _says(scaler, "ScaleFailed", str(refused.problem))


def key(scaler: AnyObject) -> str:
    """Return what stands for *scaler* in the job's status."""
    return f"{scaler.kind}:{scaler.metadata.namespace}/{scaler.metadata.name}"


def _says(scaler: AnyObject, phase: str, message: str) -> Step:
    """Return the step that says so, if it is not said already."""
    known = scaler.status.get("phase"), scaler.status.get("message")
    return Step() if known == (phase, message) else Step(own={"phase": phase, "message": message})


def _apply(scaler: AnyObject, job: AnyObject, native: TrainingJob | None) -> Step:
    named, now = scaler.status.get(_field(scaler), []), jobs.target(job)
    if scaler.kind == OUT:
        wanted = [*now, *(name for name in named if name not in now)]
    else:
        wanted = [name for name in now if name not in named]
    if wanted != now:
        return Step(of_job={"targetWorkers": wanted})
    if native is None:
        return Step()
    worker = next((r for r in native.spec.roles if r.name == "worker"), None)
    told = native.status.replica_statuses.get("worker")
    if worker is None or told is None or worker.replicas != len(wanted):
        return Step()
    there = told.ready >= len(wanted) if scaler.kind == OUT else told.active <= len(wanted)
    return Step(own={"phase": "ScaleSucceeded", "message": None}) if there else Step()


def _field(scaler: AnyObject) -> str:
    return "addPods" if scaler.kind == OUT else "toDeletePods"


def _choose(scaler: AnyObject, job: AnyObject, spec: ScaleSpec) -> list[str]:
    """Return the workers to add, above all there are, or to take away, the highest or as named."""
    now, (low, high) = jobs.target(job), jobs.bounds(job)
    name = job.metadata.name
    if scaler.kind == OUT:
        count = _count(spec.to_add, "spec.toAdd")
        if len(now) + count > high:
            most = f"must be at most {high - len(now)}: the job has {len(now)} of {high} workers"
            raise Refused("spec.toAdd.count", count, most)
        last = max((i for one in now if (i := jobs.index_of(name, one)) is not None), default=-1)
        return [jobs.worker_name(name, last + 1 + i) for i in range(count)]
    wish = spec.to_delete or Amount()
    for one in wish.pod_names:
        if one not in now:
            raise Refused("spec.toDelete.podNames", one, f"must be of: {', '.join(now)}")
    named = wish.pod_names or _highest(name, now)[: _count(spec.to_delete, "spec.toDelete")]
    if len(now) - len(named) < low:
        most = f"must be at most {len(now) - low}: the job has {len(now)} workers and needs {low}"
        raise Refused("spec.toDelete", len(named), most)
    return named


def _highest(job: str, names: list[str]) -> list[str]:
    return sorted(names, key=lambda one: jobs.index_of(job, one) or 0, reverse=True)


def _count(amount: Amount | None, at: str) -> int:
    if amount is None or amount.count is None:
        raise Refused(f"{at}.count", None, "must be a number from 1")
    return amount.count
