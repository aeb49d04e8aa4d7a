"""Reading one card over and over: each reading is a dictionary by the keys of ``core.fields``.

Calls that a card does not support are left out until the next look at what it supports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockstep.devices import nvml

Reading = dict[str, float]

LOOK_AGAIN = 300
"""Readings after which calls that were not supported are tried again."""
MEMORY_TEMP, POWER_POLICY, THERMAL_POLICY, SYNC_POLICY, NVLINK_TX, NVLINK_RX = (
    82,
    74,
    75,
    76,
    138,
    139,
)
FIELD_IDS: Mapping[int, str] = {
    MEMORY_TEMP: "memory_temperature",
    POWER_POLICY: "power_violation",
    THERMAL_POLICY: "thermal_violation",
    SYNC_POLICY: "sync_violation",
    NVLINK_TX: "nvlink",
    3: "ecc_volatile_corrected",
    4: "ecc_volatile_uncorrected",
}
MIB = float(1 << 20)
GPM: Mapping[int, tuple[str, float]] = {
    1: ("prof_graphics", 0.01),
    2: ("prof_sm", 0.01),
    3: ("prof_occupancy", 0.01),
    5: ("prof_tensor", 0.01),
    10: ("prof_dram", 0.01),
    11: ("prof_fp64", 0.01),
    12: ("prof_fp32", 0.01),
    13: ("prof_fp16", 0.01),
    20: ("prof_pcie_tx", MIB),
    21: ("prof_pcie_rx", MIB),
    60: ("prof_nvlink_rx", MIB),
    61: ("prof_nvlink_tx", MIB),
}
"""NVML's GPM metrics: reading and factor; ratios come in percent, rates in MiB/s."""
SLOW = 10
"""Readings between two of what changes seldom."""


class Lost(Exception):
    """The card cannot be reached any more."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process on a card: MiB, and hundredths of the SM time since the last reading."""

    pid: int
    memory: float
    sm: float = 0.0
    instance: int = -1


@dataclass(slots=True)
class Sample:
    """What one reading of a card found."""

    values: Reading = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)


class Sampler:
    """Reads one card; used by one thread at a time."""

    def __init__(self, lib: Any, index: int, *, processes: bool = True) -> None:
        self._lib, self._index, self._processes = lib, index, processes
        self._count = 0
        self._without: set[str] = set()
        self._slow: Reading = {}
        self._gpm: list[Any] = []
        self._since = 0
        self._device = nvml.handle(lib, index)
        self._wanted = _wanted(lib)
        self._parts: tuple[tuple[str, Callable[[], Reading]], ...] = (
            ("utilization", self._utilization),
            ("memory", self._memory),
            ("clocks", self._clocks),
            ("temperature", lambda: {"temperature": self._call("Temperature", 0)}),
            ("power", lambda: {"power": self._call("PowerUsage") / 1000}),
            ("energy", lambda: {"energy": self._call("TotalEnergyConsumption")}),
            ("throttle", lambda: {"throttle": self._call("CurrentClocksEventReasons")}),
            ("fabric", lambda: {"fabric_state": nvml.fabric_info(lib, self._device).state}),
            ("fields", self._fields),
            ("gpm", self._profile),
        )
        self._seldom: tuple[tuple[str, Callable[[], Reading]], ...] = (
            ("encoder", lambda: {"encoder": self._call("EncoderUtilization")[0]}),
            ("decoder", lambda: {"decoder": self._call("DecoderUtilization")[0]}),
            ("fan", lambda: {"fan": self._call("FanSpeed")}),
            ("replay", lambda: {"pcie_replay": self._call("PcieReplayCounter")}),
            ("width", lambda: {"pcie_width": self._call("CurrPcieLinkWidth")}),
            ("width_max", lambda: {"pcie_width_max": self._call("MaxPcieLinkWidth")}),
            (
                "generation_max",
                lambda: {"pcie_generation_max": self._call("MaxPcieLinkGeneration")},
            ),
            ("generation", lambda: {"pcie_generation": self._call("CurrPcieLinkGeneration")}),
            ("rows", self._rows),
            ("nvlinks", self._nvlinks),
            ("throughput", self._throughput),
        )

    def read(self) -> Sample:
        """Return what the card says now.

        Raises:
            Lost: when it cannot be reached.
        """
        if self._count % LOOK_AGAIN == 0:
            self._without.clear()
        found: Reading = {}
        if self._count % SLOW == 0:
            self._slow = self._gather(self._seldom)
        found |= self._gather(self._parts)
        found |= self._slow
        for name, other in (("pcie_tx", "prof_pcie_tx"), ("pcie_rx", "prof_pcie_rx")):
            if other in found:
                found[name] = found[other] / 1024
        self._count += 1
        return Sample(found, self._running() if self._processes else [])

    def uuid(self) -> str:
        """Return the card's identity.

        Raises:
            Lost: when it cannot be reached.
        """
        try:
            return str(self._lib.nvmlDeviceGetUUID(self._device))
        except self._lib.NVMLError as error:
            raise Lost(f"NVML: {error}") from None

    def _gather(self, parts: tuple[tuple[str, Callable[[], Reading]], ...]) -> Reading:
        found: Reading = {}
        lib = self._lib
        for name, read in parts:
            if name in self._without:
                continue
            try:
                found |= read()
            except lib.NVMLError as error:
                if error.value in (lib.NVML_ERROR_GPU_IS_LOST, lib.NVML_ERROR_UNINITIALIZED):
                    raise Lost(f"NVML: {error}") from None
                self._without.add(name)
        return found

    def _call(self, what: str, *more: Any) -> Any:
        return getattr(self._lib, f"nvmlDeviceGet{what}")(self._device, *more)

    def _utilization(self) -> Reading:
        busy = self._call("UtilizationRates")
        return {"utilization": busy.gpu, "memory_utilization": busy.memory}

    def _memory(self) -> Reading:
        # The first version counts what the driver keeps for itself as used.
        memory = self._call("MemoryInfo", self._lib.nvmlMemory_v2)
        return {
            "memory_total": memory.total / MIB,
            "memory_free": memory.free / MIB,
            "memory_used": memory.used / MIB,
            "memory_reserved": memory.reserved / MIB,
        }

    def _clocks(self) -> Reading:
        lib = self._lib
        return {
            "sm_clock": self._call("ClockInfo", lib.NVML_CLOCK_SM),
            "memory_clock": self._call("ClockInfo", lib.NVML_CLOCK_MEM),
        }

    def _fields(self) -> Reading:
        ids = [*FIELD_IDS, NVLINK_RX]
        values = self._call("FieldValues", ids)
        told = {one.fieldId: _value(one) for one in values if one.nvmlReturn == 0}
        found = {key: told[number] for number, key in FIELD_IDS.items() if number in told}
        if "nvlink" in found:
            found["nvlink"] += told.get(NVLINK_RX, 0.0)
        return found

    def _rows(self) -> Reading:
        corrected, uncorrected, pending, failed = self._call("RemappedRows")
        return {
            "remapped_correctable": corrected,
            "remapped_uncorrectable": uncorrected,
            "remap_pending": pending,
            "remap_failure": failed,
        }

    def _nvlinks(self) -> Reading:
        lib = self._lib
        states = []
        for link in range(lib.NVML_NVLINK_MAX_LINKS):
            state = nvml.known(lib, lib.nvmlDeviceGetNvLinkState, self._device, link)
            if state is None:
                break
            states.append(state)
        return {"nvlinks": len(states), "nvlinks_up": sum(states)} if states else {}

    def _throughput(self) -> Reading:
        """Read PCIe rates the old way, which takes 40 ms, where GPM does not tell them."""
        if "gpm" not in self._without and self._count:
            return {}
        return {
            "pcie_tx": self._call("PcieThroughput", 0),
            "pcie_rx": self._call("PcieThroughput", 1),
        }

    def _profile(self) -> Reading:
        """Return GPM's metrics since the last reading; nothing at the first."""
        lib = self._lib
        fresh = lib.nvmlGpmSampleAlloc()
        try:
            lib.nvmlGpmSampleGet(self._device, fresh)
        except lib.NVMLError:
            lib.nvmlGpmSampleFree(fresh)
            raise
        self._gpm.append(fresh)
        if len(self._gpm) < 2:
            return {}
        if len(self._gpm) > 2:
            lib.nvmlGpmSampleFree(self._gpm.pop(0))
        wanted = self._wanted
        wanted.sample1, wanted.sample2 = self._gpm
        lib.nvmlGpmMetricsGet(wanted)
        found = {}
        for place, (key, factor) in enumerate(GPM.values()):
            metric = wanted.metrics[place]
            if metric.nvmlReturn == 0:
                found[key] = metric.value * factor
        return found

    def _running(self) -> list[Process]:
        lib = self._lib
        listed = nvml.known(lib, lib.nvmlDeviceGetComputeRunningProcesses, self._device) or []
        if not listed:
            return []
        samples = nvml.known(lib, lib.nvmlDeviceGetProcessUtilization, self._device, self._since)
        busy: dict[int, float] = {}
        for one in samples or []:
            busy[one.pid] = float(one.smUtil)
            self._since = max(self._since, one.timeStamp)
        return [
            Process(
                one.pid,
                (one.usedGpuMemory or 0) / MIB,
                busy.get(one.pid, 0.0),
                one.gpuInstanceId if one.gpuInstanceId not in (None, 0xFFFFFFFF) else -1,
            )
            for one in listed
        ]


def _wanted(lib: Any) -> Any:
    """Return the question for all of GPM's metrics that are read; its two samples are left open."""
    wanted = lib.c_nvmlGpmMetricsGet_t()
    wanted.version = lib.NVML_GPM_METRICS_GET_VERSION
    wanted.numMetrics = len(GPM)
    for place, number in enumerate(GPM):
        wanted.metrics[place].metricId = number
    return wanted


def _value(one: Any) -> float:
    value = one.value
    kinds = (value.dVal, value.uiVal, value.ulVal, value.ullVal, value.sllVal, value.siVal)
    return float(kinds[one.valueType]) if one.valueType < len(kinds) else 0.0
