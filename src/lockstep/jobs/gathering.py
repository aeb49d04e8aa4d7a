"""The world of a job's ranks: when its launchers have gathered, run, and may leave.

The world moves forward only: within a generation from Gather to Run to Leave, and back to Gather
with the next generation alone, which the status records before anything follows from it.
"""

from __future__ import annotations

from collections import Counter as PodCount
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lockstep.api import timestamp
from lockstep.api.core import ConfigMap, Lease
from lockstep.api.names import REPORT_ANNOTATION
from lockstep.api.rendezvous import LONGEST_REPORT, WORLD_KEY, Part, Report, Snapshot, World
from lockstep.api.roles import processes
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.jobs.frameworks.base import Member, own_setting, port
from lockstep.jobs.job_state import Seen
from lockstep.jobs.roster import Roster, finished, owns

_STARTED: Final = ("Run", "Leave")
_SOURCES: Final = 8
"""Launchers that are named as sources: enough for some of them to be lost meanwhile."""


def reports(seen: Seen, roster: Roster) -> dict[str, Report]:
    """Return what the launchers of the present pods report, by pod.

    A report of an earlier pod of the same name is not believed; neither is one that is no report.
    """
    found: dict[str, Report] = {}
    for name, pod in (*roster.current.items(), *roster.standing.items()):
        lease = seen.leases.get(name)
        report = report_in(lease) if lease is not None and owns(seen.job, lease.metadata) else None
        if report is not None and report.uid == pod.metadata.uid:
            found[name] = report
    return found


def report_in(lease: Lease) -> Report | None:
    """Return what a launcher reports in *lease*; nothing where that is no report."""
    text = lease.metadata.annotations.get(REPORT_ANNOTATION, "")
    if not text or len(text) > LONGEST_REPORT:
        return None
    try:
        return msgspec.json.decode(text, type=Report)
    except msgspec.DecodeError:
        return None


def current(seen: Seen) -> World | None:
    """Return the world as the launchers see it, if there is one of this job."""
    there: ConfigMap | None = seen.world
    if there is None or not owns(seen.job, there.metadata):
        return None
    try:
        return msgspec.json.decode(there.data.get(WORLD_KEY, ""), type=World)
    except msgspec.DecodeError:
        return None


def world(seen: Seen, roster: Roster, now: float) -> World:
    """Return the world that *seen*'s job should have; its status names the generation."""
    job = seen.job
    wanted = _gathering(job, roster)
    there = current(seen)
    if there is not None and _alike(there, wanted):
        wanted = msgspec.structs.replace(there, replicated=job.status.replicated)
    told = reports(seen, roster)
    if wanted.phase == "Gather" and not _held_back(job.status, now):
        if _all(roster, told, wanted.generation, "Ready"):
            step, sources = resume(roster, told, job.status.replicated)
            saved = stored(roster, told)
            from_disk = saved is not None and (step is None or saved > step)
            if from_disk:
                step, sources = saved, []
            return msgspec.structs.replace(
                wanted, phase="Run", resume=step, sources=sources, stored=from_disk
            )
    elif wanted.phase == "Run" and _all(roster, told, wanted.generation, "Done"):
        return msgspec.structs.replace(wanted, phase="Leave")
    if wanted.phase != "Run":
        return wanted
    peers = wanted.peers or _peers(roster, told, wanted.generation)
    asked = suspected(told, wanted.generation)
    return msgspec.structs.replace(wanted, asked=asked, peers=peers)


def _peers(roster: Roster, told: Mapping[str, Report], generation: int) -> list[str]:
    """Return where launchers hand over copies, in the order of ranks, once all hold parts.

    What is the same in all ranks needs no copies elsewhere.
    """
    found = [told.get(name) for name in roster.wanted]
    each = [one for one in found if one is not None and one.generation == generation]
    complete = len(found) == len(each) > 1 and all(one.sharded and one.address for one in each)
    return [one.address for one in each] if complete else []


def suspected(told: Mapping[str, Report], generation: int) -> bool:
    """Say whether a launcher suspects that a rank of *generation* hangs."""
    return any(
        report.generation == generation
        and report.state == "Running"
        and any(rank.suspect for rank in report.ranks)
        for report in told.values()
    )


def _alike(there: World, wanted: World) -> bool:
    return (there.generation, there.parts, there.ranks) == (
        wanted.generation,
        wanted.parts,
        wanted.ranks,
    )


def _gathering(job: TrainingJob, roster: Roster) -> World:
    generation = job.status.generation
    first = min(roster.wanted.values(), key=lambda member: member.rank)
    own = own_setting(job, "MASTER_PORT")
    return World(
        generation=generation,
        phase="Gather",
        parts=parts(job, roster),
        ranks=_ranks(roster),
        master=first.host,
        # A rank that is slow to die keeps its port: the next generation takes another.
        port=int(own) if own else port(job, "master" if generation == 1 else f"{generation}"),
        restarts=job.status.restarts,
        replicated=job.status.replicated,
    )


def _ranks(roster: Roster) -> dict[str, int]:
    """Return the places of all pods, where one of them is not that of its name."""
    if not roster.standby:
        # The places are those of the names.
        return {}
    return {name: rank for rank, name in enumerate(roster.wanted)}


def parts(job: TrainingJob, roster: Roster) -> list[Part]:
    """Return how many pods and processes each role has now."""
    pods = PodCount(member.role.name for member in roster.wanted.values())
    return [
        Part(role=role.name, pods=pods[role.name], processes=processes(role))
        for role in job.spec.roles
    ]


def outgrown(seen: Seen, status: TrainingJobStatus, roster: Roster) -> bool:
    """Say whether the world of the present generation was made for other sizes."""
    there = current(seen)
    return (
        there is not None
        and there.generation == status.generation
        and (there.parts, there.ranks) != (parts(seen.job, roster), _ranks(roster))
    )


def started(seen: Seen, roster: Roster) -> bool:
    """Say whether the ranks are started, as far as there are launchers that report at all."""
    there = current(seen)
    if not reports(seen, roster) or there is None:
        return True
    return there.generation == seen.job.status.generation and there.phase in _STARTED


def _held_back(status: TrainingJobStatus, now: float) -> bool:
    return status.retry_at is not None and timestamp.parse(status.retry_at) > now


def _all(roster: Roster, told: Mapping[str, Report], generation: int, state: str) -> bool:
    return all(
        (report := told.get(name)) is not None
        and (report.generation, report.state) == (generation, state)
        and not finished(roster.current[name])
        for name in roster.wanted
    )


def resume(
    roster: Roster, told: Mapping[str, Report], replicated: bool = False
) -> tuple[int | None, list[str]]:
    """Return the newest step that all can go on from, and which launchers hand it to others.

    It is whole in the memory of every rank; or, where all hold the same, of those that have any.
    """
    size = sum(processes(member.role) for member in roster.wanted.values())
    held = {n: _steps(member, told[n].snapshots, size) for n, member in roster.wanted.items()}
    sharded = any(one.sharded for name in roster.wanted for one in told[name].snapshots)
    every = [steps for each in held.values() for steps in each]
    some = [steps for steps in every if steps]
    if common := set.intersection(*every):
        return max(common), []
    if sharded:
        return _of_parts(roster, told, size)
    if not replicated or not some:
        return None, []
    step = max(set.intersection(*some) or set.union(*some))
    sources = [
        told[name].address
        for name, each in held.items()
        if told[name].address and any(step in steps for steps in each)
    ]
    return (step, sources[:_SOURCES]) if sources else (None, [])


def _of_parts(
    roster: Roster, told: Mapping[str, Report], size: int
) -> tuple[int | None, list[str]]:
    """Return the newest step of which every rank's part is whole somewhere, and where.

    A rank whose launcher lacks it gets it from another that has kept it.
    """
    held: dict[int, dict[int, list[str]]] = {rank: {} for rank in range(size)}
    own: set[tuple[int, int]] = set()
    for name in roster.wanted:
        for one in told[name].snapshots:
            if one.sharded and one.size == size and one.rank in held and told[name].address:
                held[one.rank].setdefault(one.step, []).append(told[name].address)
                if one.local >= 0:
                    own.add((one.rank, one.step))
    step = max(set.intersection(*(set(steps) for steps in held.values())), default=None)
    if step is None:
        return None, []
    lacking = [rank for rank in held if (rank, step) not in own]
    return step, sorted({address for rank in lacking for address in held[rank][step]})


def stored(roster: Roster, told: Mapping[str, Report]) -> int | None:
    """Return the newest checkpoint that every launcher finds and these ranks can go on from."""
    size = sum(processes(member.role) for member in roster.wanted.values())
    found = [
        {one.step for one in told[name].stored if one.free or one.size == size}
        for name in roster.wanted
    ]
    return max(set.intersection(*found), default=None)


def saved_at(roster: Roster, told: Mapping[str, Report]) -> float | None:
    """Return when the newest step was saved that all ranks have saved; none while one has not."""
    found = [told[name].saved if name in told else None for name in roster.wanted]
    times = [one.at for one in found if one is not None]
    return min(times) if found and len(times) == len(found) else None


def _steps(member: Member, copies: Iterable[Snapshot], size: int) -> list[set[int]]:
    held: list[set[int]] = [set() for _ in range(processes(member.role))]
    for snapshot in copies:
        # Parts of tensors are cut for one number of ranks.
        fits = not snapshot.sharded or snapshot.size == size
        if 0 <= snapshot.local < len(held) and fits:
            held[snapshot.local].add(snapshot.step)
    return held


def replicated(roster: Roster, told: Mapping[str, Report], status: TrainingJobStatus) -> bool:
    """Say whether all ranks hold the same state, by their checksums after the same first step."""
    seen: set[tuple[int, int]] = set()
    for name, member in roster.wanted.items():
        report = told.get(name)
        if report is None or report.generation != status.generation:
            return status.replicated
        if len(report.first) != processes(member.role):
            return status.replicated
        seen |= {(first.step, first.sum) for first in report.first}
    steps = {step for step, _ in seen}
    # One rank alone tells nothing; neither do those that began to keep at different steps.
    return len(seen) == 1 if len(steps) == 1 else status.replicated
