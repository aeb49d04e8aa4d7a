"""Asks the engine what was the matter, and writes it with the status that is written anyway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from signal import SIGKILL
from typing import Final

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import Pod
from lockstep.api.diagnosis import Diagnosis, Place
from lockstep.api.node_health import Finding
from lockstep.api.rendezvous import Ended, Report
from lockstep.api.training import TrainingJobStatus
from lockstep.health.core.diagnose import diagnose, with_findings
from lockstep.health.core.holding import holds
from lockstep.health.core.lines import Line
from lockstep.jobs.failures import Failure
from lockstep.jobs.job_state import Seen
from lockstep.jobs.reasons import unstarted, waits
from lockstep.jobs.roster import Roster, exits

NOT_STARTED: Final = " has not started: "
RECENT: Final = 120.0
"""Seconds for which a fault of a node may be why a rank on it failed."""


def of_ranks(
    seen: Seen, status: TrainingJobStatus, roster: Roster, told: Mapping[str, Report], now: float
) -> TrainingJobStatus:
    """Return *status* with the verdict on the ranks that the launchers say have failed."""
    failed = {
        name: report.ended
        for name, report in told.items()
        if report.ended is not None and report.state == "Failed"
    }
    lines = [
        Line(text, _node(roster.current.get(name)), ended.rank, ended.at, killed=said_before)
        for name, ended in failed.items()
        # How it ended comes last: its code or signal tells where its own words do not.
        for text, said_before in (
            (ended.line, ended.signal == SIGKILL),
            (f"rank {ended.rank} {_exit(ended)}", False),
        )
        if text
    ]
    killed = any(ended.signal == SIGKILL for ended in failed.values())
    verdict = with_findings(diagnose(lines), _findings(seen, roster, failed, now), killed)
    return structs.replace(status, diagnosis=verdict)


def _exit(ended: Ended) -> str:
    """Return how a rank ended, in the words that nodes use of pods."""
    if not ended.signal:
        return f"failed with exit code {ended.code}"
    reason = ": OOMKilled" if ended.oom else ""
    return f"failed with exit code {128 + ended.signal} (signal {ended.signal}){reason}"


def of_pods(
    seen: Seen,
    status: TrainingJobStatus,
    roster: Roster,
    found: Iterable[Failure],
    now: float,
) -> TrainingJobStatus:
    """Return *status* with the verdict on failed pods; what was taken away says so itself."""
    failures = list(found)
    taken = next((one for one in failures if one.disrupted), None)
    lines: list[Line] = []
    for failure in failures:
        pod = roster.current.get(failure.name)
        # How it ended comes last: its code or signal tells where its own words do not.
        killed = failure.code == 128 + SIGKILL
        lines += [Line(line, _node(pod), killed=killed) for line in _said(pod)]
        lines.append(Line(_end(failure), _node(pod)))
    verdict = diagnose(lines) if taken is None else _disrupted(taken, roster)
    names = [failure.name for failure in failures]
    killed = any(failure.code == 128 + SIGKILL for failure in failures)
    verdict = with_findings(verdict, _findings(seen, roster, names, now), killed)
    return structs.replace(status, diagnosis=verdict)


def of_waits(status: TrainingJobStatus, roster: Roster) -> TrainingJobStatus:
    """Return *status* with the verdict on what keeps placed pods from starting, while it does."""
    why = ((pod, waits(pod)) for pod in unstarted(list(roster.current.values())))
    lines = [
        Line(f"{pod.metadata.name}{NOT_STARTED}{said}", _node(pod)) for pod, said in why if said
    ]
    old, found = status.diagnosis, diagnose(lines)
    mine = old is not None and any(NOT_STARTED in line for line in old.evidence)
    if not lines:
        return structs.replace(status, diagnosis=None) if mine else status
    # A node says it with other words each time that it tries again.
    if not found.confidence or (mine and old is not None and found.confidence <= old.confidence):
        return status
    return structs.replace(status, diagnosis=found)


def _end(failure: Failure) -> str:
    """Return how a pod ended, without the last words of one that was killed."""
    end, _, _ = failure.why.partition("; it wrote last: ")
    return end


def _disrupted(taken: Failure, roster: Roster) -> Diagnosis:
    node = _node(roster.current.get(taken.name))
    return Diagnosis(
        class_="platform",
        cause="a pod was taken away",
        action="restart_in_place",
        place=Place(nodes=[node] if node else []),
        confidence=0.9,
        evidence=[taken.why],
    )


def _findings(
    seen: Seen, roster: Roster, names: Iterable[str], now: float
) -> Iterator[tuple[str, Finding]]:
    """Return what was found of late of the failed pods' nodes, or of the devices they hold."""
    for name in names:
        pod = roster.current.get(name)
        if pod is None:
            continue
        for one in seen.findings.get(pod.spec.node_name, ()):
            at = timestamp.read(one.last)
            recent = at is not None and now - at < RECENT
            if recent and (one.device in holds(pod) or not one.device):
                yield pod.spec.node_name, one


def _said(pod: Pod | None) -> list[str]:
    """Return what the containers of a failed pod said at their end."""
    if pod is None:
        return []
    return [
        line.strip()
        for _, end in exits(pod)
        for line in (end.reason, *end.message.splitlines())
        if line.strip()
    ]


def _node(pod: Pod | None) -> str:
    return pod.spec.node_name if pod is not None else ""
