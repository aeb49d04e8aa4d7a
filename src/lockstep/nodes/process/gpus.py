"""The GPUs of this machine, where NVIDIA's library finds any."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from lockstep.api.devices import Device

log = logging.getLogger(__name__)


class NotEnough(Exception):
    """Fewer GPUs are free than a pod asks for."""


def find() -> list[tuple[Device, str]]:
    """Return the GPUs that NVML reports, with their PCI addresses.

    None without the library or the driver.
    """
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
        handles = [
            pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
        ]
        domains = _domains(handles)
        return [_describe(i, handle, domains[i]) for i, handle in enumerate(handles)]
    finally:
        pynvml.nvmlShutdown()


def _describe(index: int, handle: object, nvlink: int) -> tuple[Device, str]:
    import pynvml

    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    device = Device(
        index=index,
        kind="gpu",
        model=str(pynvml.nvmlDeviceGetName(handle)),
        memory=int(memory.total) >> 20,
        nvlink=nvlink,
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
    )
    # NVML writes eight digits of the domain, the kernel four.
    address = str(pynvml.nvmlDeviceGetPciInfo(handle).busId).lower()
    return device, address[-len("0000:00:00.0") :]


def _domains(handles: Sequence[object]) -> list[int]:
    """Return the number of each GPU's NVLink domain: those that reach each other share one."""
    domains = list(range(len(handles)))
    for one in range(len(handles)):
        for other in range(one):
            if domains[one] != domains[other] and _linked(handles[one], handles[other]):
                joined, kept = domains[one], domains[other]
                domains = [kept if domain == joined else domain for domain in domains]
    return domains


def _linked(one: object, other: object) -> bool:
    import pynvml

    try:
        status = pynvml.nvmlDeviceGetP2PStatus(one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except pynvml.NVMLError:
        return False
    return bool(status == pynvml.NVML_P2P_STATUS_OK)


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
