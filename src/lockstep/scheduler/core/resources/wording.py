"""Amounts, lists and requests in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockstep.api.names import CPU, GPU, GPU_CARDS, GPU_COMPUTE, GPU_MEMORY, MEMORY, NICS, PODS
from lockstep.scheduler.core.resources.columns import PORT_PREFIX, is_port

_BYTES = ("memory", "ephemeral-storage", "hugepages-")
_UNITS = ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)


def count(number: int, noun: str) -> str:
    """Return ``1 node`` or ``3 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(parts: Sequence[str], last: str = "and") -> str:
    """Return the parts as a list in prose: ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def quantity(resource: str, value: int) -> str:
    """Return an amount as people write it: ``8 GPUs``, ``1.5 CPUs``, ``16Gi memory``."""
    if resource == GPU:
        return count(value, "GPU")
    if resource == NICS:
        return count(value, "NIC")
    if resource == PODS:
        return count(value, "pod")
    if resource == GPU_CARDS:
        return f"parts of {count(value, 'GPU')}"
    if resource == GPU_COMPUTE:
        return f"{value} hundredths of GPUs"
    if resource == GPU_MEMORY:
        return f"{value} MiB of GPU memory"
    if resource == CPU:
        cpus = f"{value / 1000:g}"
        return f"{cpus} CPU" if cpus == "1" else f"{cpus} CPUs"
    if is_port(resource):
        return f"host port {resource.removeprefix(PORT_PREFIX)}"
    if resource.startswith(_BYTES):
        return f"{_bytes(value)} {resource}"
    return f"{value} {resource}"


def share(resource: str, part: int, whole: int) -> str:
    """Return a part of an amount: ``12 of 16 GPUs``, ``1Gi of 4Gi memory``."""
    number = quantity(resource, part).partition(" ")[0]
    return f"{number} of {quantity(resource, whole)}"


def instead(resource: str, amount: int, asked: int) -> str:
    """Return an amount in place of another: ``4 instead of 8 GPUs``."""
    if resource == GPU_CARDS:
        return f"parts of {instead(GPU, amount, asked)}"
    number = quantity(resource, amount).partition(" ")[0]
    return f"{number} instead of {quantity(resource, asked)}"


def _bytes(value: int) -> str:
    for suffix, size in _UNITS:
        if value >= size:
            return f"{round(value / size, 1):g}{suffix}"
    return str(value)


def request(wanted: Mapping[str, int]) -> str:
    """Return what one pod asks for, the scarcest first; its own place is left out."""
    scarce = (GPU, GPU_CARDS, GPU_COMPUTE, GPU_MEMORY, NICS, CPU, MEMORY)
    first = [name for name in scarce if name in wanted]
    rest = sorted(name for name in wanted if name not in (*first, PODS))
    parts = [quantity(name, wanted[name]) for name in (*first, *rest)]
    return ", ".join(parts) or "no resources"
