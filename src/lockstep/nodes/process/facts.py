"""What a node knows of a pod on it: the input of every decision and of the pod's status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lockstep.api.share_sizes import Size
from lockstep.nodes.process.spec import Container, Pod


class Role(Enum):
    """What part a container plays in its pod."""

    INIT = "init"
    """Runs to its end before the next one."""
    SIDECAR = "sidecar"
    """Started among the init containers, runs as long as the pod."""
    MAIN = "main"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a run of a container ended."""

    code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    finished: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container; times are seconds since the epoch."""

    attempt: int
    started: float
    pid: int = 0
    exit: Exit | None = None


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a container could not be started, and when to try again."""

    reason: str
    message: str
    retry_at: float
    failures: int = 1


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """A container's history and what its probes say."""

    run: Run | None = None
    """The present run, or the last one."""
    previous: Run | None = None
    """The run before that."""
    hindrance: Hindrance | None = None
    backoff: float = 0.0
    """Seconds to wait after the end of the last run before the next."""
    started: bool = False
    """Whether the startup probe has succeeded (or there is none)."""
    ready: bool = False
    """Whether the readiness probe succeeds (or there is none)."""
    unhealthy: str = ""
    """Why a probe wants the present run ended; empty when none does."""
    stopping: bool = False
    """Whether the present run has been told to stop."""

    @property
    def running(self) -> bool:
        """Tell whether the container's process runs."""
        return self.run is not None and self.run.exit is None

    @property
    def exit(self) -> Exit | None:
        """Return how the last run ended; none while it runs or before the first."""
        return self.run.exit if self.run else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the node ended a pod, or never let it start."""

    reason: str
    message: str
    admitted: bool = True


@dataclass(frozen=True, slots=True)
class Resized:
    """Whether a share is held to the size that its pod wants, and why not."""

    done: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod's containers and its own progress on the node."""

    containers: dict[str, ContainerFacts] = field(default_factory=dict)
    accepted_at: float = 0.0
    prepared: bool = False
    """Whether its address, directories and volumes are there."""
    hindrance: Hindrance | None = None
    """Why they are not."""
    verdict: Verdict | None = None
    deleted: bool = False
    """Whether the server wants it gone."""
    grace: float = 30.0
    released: bool = False
    """Whether nothing of it is left on the node but its logs."""
    disrupted: str = ""
    """Why the node ends the pod's containers for a reason that is not the pod's."""
    ip: str = ""
    shares: Mapping[str, Size] = field(default_factory=dict)
    """By container, shares of GPUs that have another size than the pod's spec says."""
    resized: Resized | None = None
    """What became of the last wish for another size."""

    def of(self, name: str) -> ContainerFacts:
        """Return what is known of the container *name*."""
        return self.containers.get(name, NOTHING)


NOTHING = ContainerFacts()


def role_of(container: Container, *, init: bool) -> Role:
    """Return the part that *container* plays, listed among the init containers or not."""
    if not init:
        return Role.MAIN
    return Role.SIDECAR if container.restart_policy == "Always" else Role.INIT


def containers_of(pod: Pod) -> list[tuple[Container, Role]]:
    """Return all containers of *pod* in the order of their start, each with its role."""
    first = [(one, role_of(one, init=True)) for one in pod.spec.init_containers]
    return first + [(one, Role.MAIN) for one in pod.spec.containers]
