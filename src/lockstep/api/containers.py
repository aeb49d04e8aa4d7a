"""Views of a pod's containers: what each asks for, and what each does."""

from __future__ import annotations

from msgspec import field

from lockstep.api.wire import Wire

Quantity = str | int | float


class ContainerClaim(Wire, frozen=True):
    """One of its pod's claims that a container may use: all of it, or one request."""

    name: str
    request: str = ""


class ResourceRequirements(Wire, frozen=True):
    """What a container asks for and may use at most."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    claims: list[ContainerClaim] = []


class ContainerPort(Wire, frozen=True):
    """A port that a container listens on."""

    container_port: int
    name: str = ""
    protocol: str = "TCP"
    host_port: int = 0


class Container(Wire, frozen=True):
    """The scheduling view of a container."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str = ""


class StateTerminated(Wire, frozen=True):
    """How a container ended."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class StateWaiting(Wire, frozen=True):
    """Why a container has not started."""

    reason: str = ""
    message: str = ""


class StateRunning(Wire, frozen=True):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerState(Wire, frozen=True):
    """One of three states is set."""

    running: StateRunning | None = None
    terminated: StateTerminated | None = None
    waiting: StateWaiting | None = None


class ContainerStatus(Wire, frozen=True):
    """What a container is doing."""

    name: str
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    container_id: str = field(default="", name="containerID")
    resources: ResourceRequirements = ResourceRequirements()
    """What it has now, where that may differ from its spec."""
