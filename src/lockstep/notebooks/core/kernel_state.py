"""What controllers of notebooks and kernels see, and what they do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from lockstep.api.core import Pod
from lockstep.api.notebooks import Environment, Kernel, KernelStatus
from lockstep.api.wire import Json
from lockstep.compat.kubeflow.notebook import Notebook
from lockstep.runtime.actions import Action, Note

CACHE: Final = "/var/cache/lockstep/environments"
KERNEL_IMAGE: Final = "lockstep/kernel:latest"
"""What process nodes run as a kernel, by their table of images."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for every notebook and kernel of a cluster."""

    gateway: str = ""
    """URL of the gateway as pods reach it; empty where there is none."""
    cache: str = CACHE
    """Directory of each node in which packages are built, one below it for each namespace."""
    kernel_image: str = KERNEL_IMAGE
    """Image of kernels whose environment names none; on a cluster Lockstep's own."""


@dataclass(frozen=True, slots=True)
class Park:
    """Ask a kernel's keeper to keep the session; with *drop* without what cannot be kept."""

    drop: bool = False


Step = Action | Park | Note


@dataclass(frozen=True, slots=True)
class Report:
    """What a kernel's keeper says of it."""

    execution_state: str = "idle"
    idle_for: float = 0.0
    connections: int = 0
    parked: Json | None = None
    restored: Json | None = None
    failure: str = ""
    info: Json = field(default_factory=dict)
    ready: bool = False


@dataclass(frozen=True, slots=True)
class SeenKernel:
    """All that is known of a kernel."""

    kernel: Kernel
    pod: Pod | None = None
    report: Report | None = None
    """None while the keeper does not answer."""
    environment: Environment | None = None
    notebook: Notebook | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A kernel's new status, what is to be done then, and in how many seconds to look again."""

    status: KernelStatus
    actions: tuple[Step, ...] = ()
    again: float | None = None
