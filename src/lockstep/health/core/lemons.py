"""Nodes on which job after job fails, and GPUs on which programs of job after job make errors.

One job that fails ten times says something about the job; ten jobs that fail on one node say
something about the node. So different jobs are counted, by their names in the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lockstep.api.diagnosis import Diagnosis
from lockstep.api.node_health import Finding

FAILS: Final = "jobs fail on this node"
ERRORS: Final = "programs of several jobs make errors on this GPU"
MOST: Final = 8
"""Jobs that are remembered of a node."""
SUSPECTED: Final = 0.5
SURE: Final = 0.85


def blamed(verdict: Diagnosis, findings: Iterable[Finding]) -> tuple[str, str] | None:
    """Return cause and device that a failed job counts against; None where against none.

    *findings* are those of the one node that *verdict* names.
    """
    if len(verdict.place.nodes) != 1:
        return None
    if verdict.class_ in ("hardware", "software", "network", "unknown"):
        return FAILS, ""
    if verdict.class_ != "user":
        return None
    devices = {
        one.device
        for one in findings
        if one.class_ == "user" and "Xid" in one.evidence and one.device.startswith("gpu/")
    }
    return (ERRORS, devices.pop()) if len(devices) == 1 else None


def counted(findings: Iterable[Finding], blame: tuple[str, str], job: str, most: int) -> Finding:
    """Return the finding after *job* failed too; from *most* different jobs on it isolates."""
    cause, device = blame
    before = next((one for one in findings if (one.cause, one.device) == blame), None)
    known = before.evidence.removeprefix("jobs: ").split(", ") if before is not None else []
    jobs = [*dict.fromkeys([*(one for one in known if one and one != job), job])][-MOST:]
    lemon = bool(most) and len(jobs) >= most
    return Finding(
        cause=cause,
        class_="hardware",
        action="isolate_node" if lemon else "observe",
        device=device,
        confidence=SURE if lemon else SUSPECTED,
        evidence="jobs: " + ", ".join(jobs),
        by="jobs",
    )
