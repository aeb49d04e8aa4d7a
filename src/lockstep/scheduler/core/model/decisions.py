"""What the scheduler decides and says: plain values, without the services that make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.resources.device_allocation import Spot

INTERNAL_ERROR = "InternalError"
ERROR_CHARACTERS = 200
"""Characters of an error's own words that are passed on; the log has all of it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One pod and its place."""

    member: Member
    spot: Spot


@dataclass(frozen=True, slots=True)
class Placement:
    """A decision: these pods of the workload go there, all of them or none."""

    workload: WorkloadKey
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a workload waits: one word for programs, and words and numbers for people."""

    reason: str
    message: str
    remedy: str = ""
    """What would change it, where the message does not say so itself."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """Pods that go so that a workload can have their place.

    The evictor notes down first which nodes the workload's pods are to get, so that
    nothing of it is lost, and then ends the victims."""

    workload: WorkloadKey
    nodes: dict[str, str]
    """By pod of the workload, the node that it is to get."""
    victims: tuple[Member, ...]
    message: str
    """What is said to victims of the workload's namespace."""
    reason: str = "PreemptionByScheduler"
    """The same in one word, as their condition has it."""
    instead_of: tuple[WorkloadKey, ...] = ()
    """Workloads whose place it was; they show it no more once it is noted down."""
    taken_back: tuple[Member, ...] = ()
    """Pods that lose their place before it was told that they have it."""
    elsewhere: str = ""
    """What is said to victims of other namespaces, where that is something else."""

    def told(self, namespace: str) -> str:
        """Return what is said to the victims of a namespace; none is told the names of others."""
        other = namespace != self.workload.namespace
        return self.elsewhere if other and self.elsewhere else self.message


@dataclass(frozen=True, slots=True)
class Note:
    """Something to be told about a gang, as an Event."""

    workload: WorkloadKey
    reason: str
    message: str
    kind: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Rollback:
    """A gang that could not be completed: these members give their nodes back."""

    workload: WorkloadKey
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a waiting workload starts, or why that is not known."""

    at: float | None
    """Unix time; None where it cannot be told."""
    why: str = ""
    """Why it cannot be told."""
    not_before: float | None = None
    """Unix time before which it does not start, where no more than that can be told."""


def internal_error(doing: str, error: Exception) -> Verdict:
    """Return what to say of the step in which an exception came up."""
    words = " ".join(f"{type(error).__name__}: {error}".split())[:ERROR_CHARACTERS]
    return Verdict(
        INTERNAL_ERROR,
        f"the scheduler failed while {doing} ({words}); everything else goes on, and this is tried "
        "again when it changes; please report it with the scheduler's log",
    )
