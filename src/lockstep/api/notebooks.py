"""Environment and Kernel: what people work in, and the sessions that compute for them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.duration import Duration
from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.queue import Amount
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class Mount(Wire, frozen=True):
    """A volume claim or a dataset, and where it is seen."""

    claim: Annotated[str, Meta(min_length=1)]
    """Volume claim; a dataset has one of its own name."""
    path: Annotated[str, Meta(pattern="^/")]
    """Where it is mounted."""
    read_only: bool = False
    """Whether it may only be read."""


class Idle(Wire, frozen=True):
    """What becomes of that which is not used."""

    after: Duration = "30m"
    """How long nothing may be at work: 30m, 2h."""
    action: Literal["Park", "Keep", "Stop"] = "Park"
    """Park keeps a kernel's variables on its volume and frees its place, and keeps what cannot be
    parked running; Stop ends that, warned; Keep does nothing."""
    keep_alive: Duration = "12h"
    """Longest time for which a user may put that off."""


class EnvironmentSpec(Wire, frozen=True):
    """Image or packages, variables, volumes and the size of a place to work in."""

    image: str = ""
    """Image of its containers; the usual one if empty."""
    packages: Annotated[list[str], Meta(max_length=2000)] = []
    """A lock: requirements with their exact versions, as pip freeze or uv export write them. Built
    once on each node."""
    variables: dict[str, str] = {}
    """Environment variables of its processes."""
    volumes: Annotated[list[Mount], Meta(max_length=64)] = []
    """Volume claims and datasets."""
    resources: dict[str, Amount] = {}
    """What a kernel in it gets: nvidia.com/gpu, memory."""
    queue: str = ""
    """Queue in which its kernels wait."""
    idle: Idle = Idle()
    """What becomes of kernels that idle."""


class Environment(OwnObject, frozen=True):
    """A place to work in, for kernels."""

    spec: EnvironmentSpec = EnvironmentSpec()
    kind: str = "Environment"


class KernelSpec(Wire, frozen=True):
    """Which kernel runs, in what, and for whom."""

    environment: str = ""
    """Environment of the same namespace; the plain one if empty."""
    language: Literal["python3"] = "python3"
    """Which of Jupyter's kernels runs."""
    notebook: str = ""
    """Notebook of the same namespace whose volumes it has."""
    owner: str = ""
    """User for whom it runs, as they are known."""
    variables: dict[str, str] = {}
    """Variables that its client gave."""
    wake: str = ""
    """A new value asks for a place again for a kernel without one."""
    since: Annotated[int, Meta(ge=0)] = 0
    """States kept before this generation are not loaded again."""
    keep_until: str = ""
    """It does not count as idle before this time (RFC 3339)."""


class ParkedState(Wire, frozen=True):
    """A session on a volume."""

    generation: int = 0
    bytes: int = 0
    variables: int = 0
    dropped: list[str] = []


KernelPhase = Literal["", "Waiting", "Starting", "Running", "Parking", "Parked", "Lost", "Failed"]


class KernelStatus(Wire, frozen=True):
    """How a kernel is."""

    phase: KernelPhase = ""
    message: str = ""
    execution_state: str = ""
    last_activity: str = ""
    """When it last did something, to the minute: what changes more often is asked of it."""
    address: str = ""
    """Host and port of its keeper; empty while it has none."""
    pod_uid: str = ""
    woken: str = ""
    """The value of ``spec.wake`` that was honoured last."""
    parked: ParkedState | None = None
    obstacles: list[str] = []
    """What keeps it from being parked."""
    warned: str = ""
    """Until when it is kept, if its user was warned of that."""
    info: dict[str, Any] = {}
    """Its answer to ``kernel_info_request``, for clients that connect while it is parked."""


class Kernel(OwnObject, frozen=True):
    """One session of a user: a kernel with a pod while it computes, on a volume while it idles."""

    spec: KernelSpec = KernelSpec()
    status: KernelStatus = KernelStatus()
    kind: str = "Kernel"


ENVIRONMENTS = Resource(GROUP, VERSION, "environments", "Environment", True, Environment)
KERNELS = Resource(GROUP, VERSION, "kernels", "Kernel", True, Kernel)
