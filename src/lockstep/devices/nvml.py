"""NVIDIA's cards through NVML: the only place that calls the library.

Each call may be unsupported on a card; then what it would tell stays unknown. A call may also hang
or the card may be gone: callers run what reads a card in a thread of the card's own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from ctypes import byref
from typing import Any, TypeVar

from msgspec.structs import replace

from lockstep.devices import driver
from lockstep.devices.calls import checked
from lockstep.devices.core.model import UNKNOWN, Card, MigDevice

log = logging.getLogger(__name__)

T = TypeVar("T")

NAME = "libnvidia-ml.so.1"
PATIENCE = 5.0
"""Seconds that a card may take to answer; one that takes longer is not used."""
P2P_READ, P2P_NVLINK = 0, 2
"""NVML's numbers; nvidia-ml-py's own name for the first is a tuple by mistake."""
GPU_TO_SWITCH = 2
"""What ``nvmlDeviceGetNvLinkRemoteDeviceType`` answers for an NVSwitch."""


def library() -> Any:
    """Return the module ``pynvml``, loaded; none where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    _load()
    checked(pynvml)
    return pynvml


def present() -> bool:
    """Tell whether this machine has NVIDIA's library; cheap, and nothing is initialised."""
    return _load() and library() is not None


def _load() -> bool:
    """Load NVIDIA's library; it stays, so that others who ask for its name get it.

    In a container that sees its node below a directory, the loader does not find it by itself.
    """
    import ctypes

    if os.environ.get(driver.HOST):
        found = driver.library(NAME)
        path = str(found.here) if found is not None else ""
    else:
        path = NAME
    try:
        ctypes.CDLL(path or NAME)
    except OSError:
        return False
    return True


@contextmanager
def session() -> Iterator[tuple[Any, str]]:
    """Initialise NVML and give the module, or none and the reason why there is none."""
    lib = library()
    if lib is None:
        yield None, "nvidia-ml-py is not installed; pip install lockstep[gpu]"
        return
    try:
        lib.nvmlInit()
    except lib.NVMLError as error:
        yield None, f"NVML: {error}"
        return
    try:
        yield lib, ""
    finally:
        lib.nvmlShutdown()


def find() -> tuple[list[Card], str]:
    """Return the cards that NVML reports, and why there are none when it cannot be asked."""
    with session() as (lib, why):
        if lib is None:
            log.debug("%s", why)
            return [], why
        return all_cards(lib), ""


def all_cards(lib: Any) -> list[Card]:
    """Return all cards; one that does not answer keeps no other from being found."""
    count = lib.nvmlDeviceGetCount()
    handles: dict[int, Any] = {}

    def look(index: int) -> Card:
        try:
            found = card(lib, index)
            # A card that was lost meanwhile told half of what it is.
            handles[index] = handle(lib, index)
        except lib.NVMLError as error:
            return Card(index=index, trouble=f"NVML: {error}")
        except (ValueError, TypeError, AttributeError) as error:
            log.exception("GPU %d: what NVML says of it cannot be read", index)
            return Card(index=index, trouble=f"NVML's answer cannot be read: {error}")
        return found

    found = _each(range(count), look)
    answered = {index: handles[index] for index in sorted(found) if index in handles}
    reached = _each(answered, lambda index: _reached(lib, index, answered))
    silent = f"NVML has not answered for {PATIENCE:.0f} s"
    cards = []
    for index in range(count):
        one = found.get(index) or Card(index=index, trouble=silent)
        peers, p2p = reached.get(index, ([], {}))
        cards.append(replace(one, peers=peers, p2p=p2p))
    return cards


def _each(indices: Iterable[int], work: Callable[[int], T]) -> dict[int, T]:
    """Return what *work* gives for each card within the time that a card has."""
    found: dict[int, T] = {}

    def run(index: int) -> None:
        found[index] = work(index)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in indices]
    for thread in threads:
        thread.start()
    until = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def handle(lib: Any, index: int) -> Any:
    """Return the handle of the card with this index.

    Raises:
        pynvml.NVMLError: when the card cannot be reached.
    """
    return lib.nvmlDeviceGetHandleByIndex(index)


def card(lib: Any, index: int) -> Card:
    """Return what NVML says of one card.

    Raises:
        pynvml.NVMLError: when the card cannot be reached.
    """
    device = handle(lib, index)
    uuid = str(lib.nvmlDeviceGetUUID(device))
    memory = known(lib, lib.nvmlDeviceGetMemoryInfo, device)
    links = [
        number
        for number in range(18)
        if known(lib, lib.nvmlDeviceGetNvLinkState, device, number) == 1
    ]
    beyond = [known(lib, lib.nvmlDeviceGetNvLinkRemoteDeviceType, device, one) for one in links]
    mig = known(lib, lib.nvmlDeviceGetMigMode, device)
    split = bool(mig and mig[0])
    return Card(
        index=index,
        uuid=uuid,
        model=str(known(lib, lib.nvmlDeviceGetName, device) or ""),
        memory=int(memory.total) >> 20 if memory is not None else 0,
        minor=_or(known(lib, lib.nvmlDeviceGetMinorNumber, device), UNKNOWN),
        serial=str(known(lib, lib.nvmlDeviceGetSerial, device) or ""),
        compute=".".join(
            map(str, known(lib, lib.nvmlDeviceGetCudaComputeCapability, device) or ())
        ),
        driver=str(known(lib, lib.nvmlSystemGetDriverVersion) or ""),
        cuda=_cuda(known(lib, lib.nvmlSystemGetCudaDriverVersion_v2)),
        pci=_address(known(lib, lib.nvmlDeviceGetPciInfo, device)),
        link_width=_or(known(lib, lib.nvmlDeviceGetMaxPcieLinkWidth, device), 0),
        nvlinks=len(links),
        nvswitch=GPU_TO_SWITCH in beyond,
        fabric=_fabric(lib, device),
        mig=split,
        mig_devices=list(_mig_devices(lib, device)) if split else [],
    )


def memory_by_process(lib: Any, uuids: Iterable[str]) -> dict[str, dict[int, int]]:
    """Return by card the bytes that each process holds; a card that does not say is left out."""
    found = {}
    for uuid in uuids:
        device = known(lib, lib.nvmlDeviceGetHandleByUUID, uuid.encode())
        listed = device and known(lib, lib.nvmlDeviceGetComputeRunningProcesses, device)
        if listed:
            found[uuid] = {one.pid: int(one.usedGpuMemory or 0) for one in listed}
    return found


def known(lib: Any, call: Callable[..., T], *arguments: Any) -> T | None:
    """Return what a call tells; none when the card or the library does not know it."""
    try:
        return call(*arguments)
    except lib.NVMLError:
        return None


def _or(value: Any, other: int) -> int:
    return other if value is None else int(value)


def _cuda(version: int | None) -> str:
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def _address(info: Any) -> str:
    # NVML writes eight digits of the domain, the kernel four.
    return str(info.busId).lower()[-len("0000:00:00.0") :] if info is not None else ""


def _reached(lib: Any, index: int, handles: Mapping[int, Any]) -> tuple[list[int], dict[str, str]]:
    """Return which cards NVLink reaches from one, and how each other is reached at all."""
    peers, states = [], {}
    for number, other in handles.items():
        if number == index:
            continue
        linked = known(lib, lib.nvmlDeviceGetP2PStatus, handles[index], other, P2P_NVLINK)
        read = known(lib, lib.nvmlDeviceGetP2PStatus, handles[index], other, P2P_READ)
        if linked == lib.NVML_P2P_STATUS_OK:
            peers.append(number)
            states[str(number)] = "nvlink"
        elif read is not None:
            states[str(number)] = "pci" if read == lib.NVML_P2P_STATUS_OK else f"no ({read})"
    return peers, states


def fabric_info(lib: Any, device: Any) -> Any:
    """Return how a card is registered with its NVLink fabric.

    Raises:
        pynvml.NVMLError: when the card has none.
    """
    info = lib.c_nvmlGpuFabricInfoV_t()
    lib.nvmlDeviceGetGpuFabricInfoV(device, byref(info))
    return info


def _fabric(lib: Any, device: Any) -> str:
    info = known(lib, fabric_info, lib, device)
    if info is None or info.state < lib.NVML_GPU_FABRIC_STATE_COMPLETED:
        return ""
    cluster = bytes(info.clusterUuid).hex()
    return f"{cluster}.{info.cliqueId}" if int(cluster, 16) else ""


def _mig_devices(lib: Any, device: Any) -> Iterator[MigDevice]:
    for number in range(known(lib, lib.nvmlDeviceGetMaxMigDeviceCount, device) or 0):
        part = known(lib, lib.nvmlDeviceGetMigDeviceHandleByIndex, device, number)
        if part is None:
            continue
        about = known(lib, lib.nvmlDeviceGetAttributes_v2, part)
        memory = int(about.memorySizeMB) if about is not None else 0
        slices = int(about.gpuInstanceSliceCount) if about is not None else 0
        yield MigDevice(
            index=number,
            uuid=str(known(lib, lib.nvmlDeviceGetUUID, part) or ""),
            profile=f"{slices}g.{-(-memory // 1024)}gb",
            memory=memory,
            gpu_instance=_or(known(lib, lib.nvmlDeviceGetGpuInstanceId, part), UNKNOWN),
            compute_instance=_or(known(lib, lib.nvmlDeviceGetComputeInstanceId, part), UNKNOWN),
        )
