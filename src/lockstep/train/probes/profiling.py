"""A window of torch's profiler over a few steps, summed up: what ran, what was waited for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Span = tuple[float, float]

_COMMUNICATION = ("gloo:", "nccl:", "mpi:", "ncclDevKernel", "ncclKernel", "c10d::")
_SYNCING = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero", "cudaStreamSynchronize")
_SHORT_OPERATION = 20.0
"""Microseconds below which an operation is mostly overhead."""


def start() -> bool:
    """Start the profiler; say whether it runs: the user's own may, and torch may be too old.

    The parts below ``torch.profiler`` are used, whose own start takes a second of a CPU.
    """
    try:
        import torch

        # Not all that the module exports is told to type checkers.
        below: Any = importlib.import_module("torch.autograd")
        extra = importlib.import_module("torch._C._profiler")._ExperimentalConfig()
        if below._profiler_enabled():
            return False
    except (ImportError, AttributeError):
        return False
    activities = {below.ProfilerActivity.CPU}
    if torch.cuda.is_available():
        activities.add(below.ProfilerActivity.CUDA)
    config = below.ProfilerConfig(
        below.ProfilerState.KINETO, False, False, False, False, False, extra
    )
    below._prepare_profiler(config, activities)
    below._enable_profiler(config, activities)
    return True


def stop(steps: int) -> Json:
    """Return the sums of the window, per step, in seconds."""
    below: Any = importlib.import_module("torch.autograd")
    return summary([_told(one) for one in below._disable_profiler().events()], steps)


def _told(event: Any) -> tuple[str, float, float, bool, int]:
    start_at = event.start_ns() / 1e3
    duration = event.duration_ns() / 1e3
    device = "CUDA" in str(event.device_type())
    return event.name(), start_at, duration, device, event.start_thread_id()


@dataclass
class _Counted:
    """What events come to: spans of talk and work, lengths in µs, and counts."""

    talk: list[Span] = field(default_factory=list)
    work: list[Span] = field(default_factory=list)
    kernels: list[float] = field(default_factory=list)
    operations: int = 0
    short: int = 0
    syncs: int = 0
    pageable: float = 0.0
    pinned: float = 0.0
    tensor: float = 0.0

    def on_device(self, name: str, lasted: float) -> None:
        """Count a copy or a kernel."""
        if name.startswith("Memcpy"):
            self.pageable += lasted if "Pageable" in name else 0
            self.pinned += lasted if "Pinned" in name else 0
        else:
            self.kernels.append(lasted)
            self.tensor += lasted if _on_tensor_cores(name) else 0

    def take(self, name: str, begun: float, lasted: float, device: bool) -> None:
        """Count an event."""
        span = (begun, begun + lasted)
        if name.startswith(_COMMUNICATION):
            self.talk.append(span)
        elif device:
            self.work.append(span)
            self.on_device(name, lasted)
        elif name.startswith("aten::"):
            self.operations += 1
            self.short += lasted < _SHORT_OPERATION
            if name in _SYNCING:
                self.syncs += 1
            if not name.startswith(("aten::item", "aten::_local")):
                self.work.append(span)
        elif name in _SYNCING:
            self.syncs += 1


def summary(events: Iterable[tuple[str, float, float, bool, int]], steps: int) -> Json:
    """Return what *events* say of each of *steps*: name, start, duration (µs), device, thread."""
    all_ = _Counted()
    for name, begun, lasted, device, _ in events:
        all_.take(name, begun, lasted, device)
    spoken, worked = _union(all_.talk), _union(all_.work)
    length, kernels, each = sum(b - a for a, b in spoken), all_.kernels, max(1, steps)
    return {
        "communication": length / 1e6 / each,
        "exposed": (length - _overlap(spoken, worked)) / 1e6 / each,
        "work": sum(b - a for a, b in worked) / 1e6 / each,
        "operations": all_.operations / each,
        "short": all_.short / each,
        "syncs": all_.syncs / each,
        "kernels": len(kernels) / each,
        "kernelMicros": sorted(kernels)[len(kernels) // 2] if kernels else 0.0,
        "kernelSeconds": sum(kernels) / 1e6 / each,
        "tensorSeconds": all_.tensor / 1e6 / each,
        "pageableSeconds": all_.pageable / 1e6 / each,
        "pinnedSeconds": all_.pinned / 1e6 / each,
    }


def _on_tensor_cores(name: str) -> bool:
    return any(word in name for word in ("16816", "884", "tensorop", "wgmma", "bf16gemm", "hmma"))


def _union(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for begun, ended in sorted(spans):
        if found and begun <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ended))
        else:
            found.append((begun, ended))
    return found


def _overlap(ones: list[Span], others: list[Span]) -> float:
    total, j = 0.0, 0
    for begun, ended in ones:
        while j and others[j - 1][1] > begun:
            j -= 1
        while j < len(others) and others[j][0] < ended:
            total += max(0.0, min(ended, others[j][1]) - max(begun, others[j][0]))
            if others[j][1] > ended:
                break
            j += 1
    return total
