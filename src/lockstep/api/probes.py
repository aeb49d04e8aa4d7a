"""What probes measured in one rank, as launchers report it (``lockstep.train.probes``)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lockstep.api.wire import Wire


class Loader(Wire, frozen=True):
    """Settings of the data loader that the rank iterates over."""

    workers: int = 0
    prefetch: int = 0
    persistent: bool = False
    pinned: bool = False
    batch: int = 0


class Profile(Wire, frozen=True):
    """A few steps under torch's profiler; seconds and numbers are for each step."""

    communication: Annotated[float, Meta(description="Seconds in collectives.")] = 0.0
    exposed: Annotated[float, Meta(description="Of them those that nothing computed in.")] = 0.0
    work: Annotated[float, Meta(description="Seconds in operations or kernels.")] = 0.0
    operations: float = 0.0
    short: Annotated[float, Meta(description="Operations of less than 20 microseconds.")] = 0.0
    syncs: Annotated[float, Meta(description="Waits of the host for a value.")] = 0.0
    kernels: float = 0.0
    kernel_micros: Annotated[float, Meta(description="Median of a kernel.")] = 0.0
    kernel_seconds: float = 0.0
    tensor_seconds: Annotated[float, Meta(description="In kernels on tensor cores.")] = 0.0
    pageable_seconds: Annotated[float, Meta(description="Copies from pageable memory.")] = 0.0
    pinned_seconds: float = 0.0


class Sheet(Wire, frozen=True):
    """One rank over the last minute: sums by name, in seconds, bytes and numbers."""

    rank: int = 0
    wall: Annotated[float, Meta(description="Seconds of the window.")] = 0.0
    step: Annotated[int, Meta(description="Steps since the rank began.")] = 0
    steps: list[float] = []
    """Seconds of a step: least, quartiles, largest."""
    sums: dict[str, float] = {}
    lines: dict[str, list[str]] = {}
    """By phase, the user's lines that took most of it."""
    loader: Loader | None = None
    profile: Profile | None = None
    cores: Annotated[float, Meta(description="CPUs that the rank may use.")] = 0.0
    throttled: Annotated[float, Meta(description="Part of time held back by its quota.")] = 0.0
