"""What the core is told and what it answers: plain values, without I/O and without a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lockstep.api.core import AnyObject, ConfigMap, Lease, Pod, Role, Secret, Service
from lockstep.api.gang import Gang
from lockstep.api.node_health import Finding
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.runtime.actions import Action, Note


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a job and of all that belongs to it.

    ``pods`` are those labelled with the job's name, of any owner. ``refusals`` are the
    server's answers to what was sent last and not accepted. ``warnings`` holds, by pod, the latest
    warning event of pods that were placed but do not start.
    """

    job: TrainingJob
    pods: Sequence[Pod] = ()
    gang: Gang | None = None
    service: Service | None = None
    launcher_service: Service | None = None
    """Of MPI's kin: what gives the launcher a name of its own."""
    config_map: ConfigMap | None = None
    secret: Secret | None = None
    refusals: Sequence[str] = ()
    warnings: Mapping[str, str] = field(default_factory=dict)
    world: ConfigMap | None = None
    """What the launchers follow (``api.worlds``)."""
    leases: Mapping[str, Lease] = field(default_factory=dict)
    """What they report in, by pod."""
    silent: frozenset[str] = frozenset()
    """Pods whose launchers have stopped to report, while others go on."""
    going: Mapping[str, str] = field(default_factory=dict)
    """Pods whose nodes go away soon, as a taint of theirs says, with its key."""
    lost: frozenset[str] = frozenset()
    """Nodes that are not Ready and tainted for it: nothing new comes to them."""
    role: Role | None = None
    binding: AnyObject | None = None
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    """What is wrong with the nodes of its pods, by node."""
    awaited: Mapping[str, Sequence[TrainingJob]] = field(default_factory=dict)
    """What each name stands for that it comes after: a job, those of an array, or nothing yet."""
    authority: str = ""
    """Whom they trust to be the API server: certificates in PEM."""
    launcher_image: str = ""
    """What brings the launcher into pods with images; empty where these have it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now.

    The order is part of the contract: first the premises are verified, then the status is written
    (against the version of the job that was decided on), then the actions follow in their order.
    A status that says more than what was seen records a decision, so that the controller that takes
    over after a crash goes through with it instead of deciding, and counting, a second time.
    """

    status: TrainingJobStatus
    actions: tuple[Action, ...] = ()
    absent: tuple[str, ...] = ()
    """Premises: pods that must really be gone, which a lagging cache cannot know."""
    again: float | None = None
    """Seconds after which time alone changes the decision."""
    notes: tuple[Note, ...] = ()
