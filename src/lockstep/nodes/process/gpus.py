"""The GPUs of this machine, where NVIDIA's library finds any."""

from __future__ import annotations

import logging
from collections.abc import Collection

from lockstep.api.core import Device

log = logging.getLogger(__name__)


class NotEnough(Exception):
    """Fewer GPUs are free than a pod asks for."""


def find() -> list[Device]:
    """Return the GPUs that NVML reports; none without the library or the driver."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        log.debug("no NVIDIA driver: %s", error)
        return []
    try:
        return [_describe(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def _describe(index: int) -> Device:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Device(
        index=index,
        kind="gpu",
        model=str(pynvml.nvmlDeviceGetName(handle)),
        memory=int(memory.total) >> 20,
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
    )


def assign(
    annotation: str, wanted: int, present: Collection[int], used: Collection[int]
) -> list[int]:
    """Return the indices of a pod's GPUs: those the scheduler chose, else the lowest free ones.

    Raises:
        NotEnough: when what is asked for is not there or not free.
    """
    if annotation:
        try:
            chosen = [int(part) for part in annotation.split(",")]
        except ValueError:
            raise NotEnough(f"the annotation {annotation!r} is not a list of GPU indices") from None
        absent = sorted(set(chosen) - set(present))
        if absent:
            raise NotEnough(f"the node has no GPU {', '.join(map(str, absent))}")
        taken = sorted(set(chosen) & set(used))
        if taken:
            raise NotEnough(f"GPU {', '.join(map(str, taken))} is in use by another pod")
        return chosen
    free = sorted(set(present) - set(used))
    if len(free) < wanted:
        raise NotEnough(f"{wanted} GPUs requested, {len(free)} of {len(present)} are free")
    return free[:wanted]
