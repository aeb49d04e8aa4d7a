"""The world of a job's ranks: when its launchers have gathered, run, and may leave.

The world moves forward only: within a generation from Gather to Run to Leave, and back to Gather
with the next generation alone, which the status records before anything follows from it.
"""

from __future__ import annotations

from collections import Counter as PodCount
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from lockstep.api import timestamp
from lockstep.api.copies import Copies
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
        wanted = msgspec.structs.replace(
            there, replicated=job.status.replicated, alike=_are_alike(job.status)
        )
    told = reports(seen, roster)
    if wanted.phase == "Gather" and not _held_back(job.status, now):
        if _all(roster, told, wanted.generation, "Ready"):
            found = resume(roster, told, job.status)
            saved = stored(roster, told)
            from_disk = saved is not None and (found.step is None or saved > found.step)
            if from_disk:
                found = Resume(saved)
            return msgspec.structs.replace(
                wanted,
                phase="Run",
                resume=found.step,
                sources=found.sources,
                own=found.own,
                stored=from_disk,
            )
    elif wanted.phase == "Run" and _all(roster, told, wanted.generation, "Done"):
        return msgspec.structs.replace(wanted, phase="Leave")
    if wanted.phase != "Run":
        return wanted
    peers = wanted.peers or _peers(roster, told, wanted.generation)
    asked = suspected(told, wanted.generation)
    return msgspec.structs.replace(wanted, asked=asked, peers=peers)


def _peers(roster: Roster, told: Mapping[str, Report], generation: int) -> list[str]:
    """Return where launchers hand over copies, in the order of ranks, once all hold a state.

    By then it is known, too, what of the states is the same in all ranks.
    """
    each = _present(roster, told, generation)
    complete = len(each) > 1 and all(one.address for one in each)
    return [one.address for one in each] if complete else []


def _present(roster: Roster, told: Mapping[str, Report], generation: int) -> list[Report]:
    """Return the reports of all pods once each has told checksums of its ranks; else none."""
    found = [
        report
        for name, member in roster.wanted.items()
        if (report := told.get(name)) is not None
        and report.generation == generation
        and len(report.first) == processes(member.role)
    ]
    return found if len(found) == len(roster.wanted) else []


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
        alike=_are_alike(job.status),
    )


def _are_alike(status: TrainingJobStatus) -> bool:
    return status.copies is not None and status.copies.alike


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


class Resume(NamedTuple):
    """Where ranks go on from: the step, who hands it over, and whether each takes its own."""

    step: int | None = None
    sources: list[str] = []
    own: bool = False


def resume(roster: Roster, told: Mapping[str, Report], status: TrainingJobStatus) -> Resume:
    """Return the newest step that all ranks can go on from.

    It is whole in the memory of every rank; or the copies of every rank are somewhere; or, where
    all hold the same, it is in the memory of those that have any.
    """
    size = sum(processes(member.role) for member in roster.wanted.values())
    held = {n: _steps(member, told[n].snapshots, size) for n, member in roster.wanted.items()}
    every = [steps for each in held.values() for steps in each]
    some = [steps for steps in every if steps]
    if common := set.intersection(*every):
        return Resume(max(common))
    own = _of_each(roster, told, size)
    snapshots = [one for name in roster.wanted for one in told[name].snapshots]
    # Of another size, no rank has a copy of its own elsewhere.
    other = all(one.size not in (None, size) for one in snapshots)
    serves = status.replicated and (other or status.copies is None or status.copies.alike)
    if own.step is not None or not some or not serves or any(one.sharded for one in snapshots):
        return own
    step = max(set.intersection(*some) or set.union(*some))
    sources = [
        told[name].address
        for name, each in held.items()
        if told[name].address and any(step in steps for steps in each)
    ]
    return Resume(step, sources[:_SOURCES]) if sources else Resume()


def _of_each(roster: Roster, told: Mapping[str, Report], size: int) -> Resume:
    """Return the newest step of which every rank's own state is whole somewhere, and where.

    A rank whose launcher lacks it gets it from another that has kept it, and what all ranks hold
    alike from any rank.
    """
    held: dict[int, dict[int, list[str]]] = {rank: {} for rank in range(size)}
    there: set[tuple[int, int]] = set()
    whole: dict[int, list[str]] = {}
    for name in roster.wanted:
        for one in told[name].snapshots:
            if one.size == size and one.rank in held and told[name].address:
                held[one.rank].setdefault(one.step, []).append(told[name].address)
                if one.local >= 0:
                    there.add((one.rank, one.step))
                    whole.setdefault(one.step, []).append(told[name].address)
    common = set.intersection(*(set(steps) for steps in held.values()))
    step = max((one for one in common if one in whole), default=None)
    if step is None:
        return Resume()
    lacking = [rank for rank in held if (rank, step) not in there]
    sources = {address for rank in lacking for address in held[rank][step]}
    return Resume(step, sorted({*sources, *whole[step][:_SOURCES]}), own=True)


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


def compared(
    roster: Roster, told: Mapping[str, Report], status: TrainingJobStatus
) -> TrainingJobStatus:
    """Return *status* with what ranks hold alike, and with what a lost pod costs.

    Their checksums after the same step show it. One rank alone shows nothing; neither do ranks
    that told checksums of different steps.
    """
    present = _present(roster, told, status.generation)
    firsts = [first for report in present for first in report.first]
    same, alike = status.replicated, _are_alike(status)
    if len({first.step for first in firsts}) == 1 and len(firsts) > 1:
        same = len({first.sum for first in firsts}) == 1
        alike = same and len({first.own for first in firsts}) == 1
    status = msgspec.structs.replace(status, replicated=same)
    if not (copies := [report.copies for report in present if report.copies is not None]):
        return status
    found = Copies(
        bytes=max(one.bytes for one in copies),
        every=max(one.every for one in copies),
        elsewhere=len(present) > 1 and all(report.kept is not None for report in present),
        alike=alike,
    )
    return msgspec.structs.replace(status, copies=found)
