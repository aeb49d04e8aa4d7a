"""What is measured of a card, under dcgm-exporter's names, types, units and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Divisor = Literal["", "sm", "memory"]


@dataclass(frozen=True, slots=True)
class Field:
    """One metric."""

    key: str
    """The reading's name inside Lockstep."""
    name: str
    kind: Literal["gauge", "counter"]
    help: str
    old: str = ""
    """The name of dcgm-exporter 1.x."""
    new: str = ""
    """The name of DCGM 4.6."""
    divisible: Divisor = ""
    """How a reading of a shared card is split: by what its processes used of this."""


_DEVICE: Final = {
    "sm_clock": ("SM_CLOCK", "SM clock frequency (in MHz)."),
    "memory_clock": ("MEM_CLOCK", "Memory clock frequency (in MHz)."),
    "memory_temperature": ("MEMORY_TEMP", "Memory temperature (in C)."),
    "temperature": ("GPU_TEMP", "GPU temperature (in C)."),
    "power": ("POWER_USAGE", "Power draw (in W)."),
    "energy": ("TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ)."),
    "fan": ("FAN_SPEED", "Fan speed for the device in percent 0-100."),
    "pcie_tx": ("PCIE_TX_THROUGHPUT", "PCIe bytes sent (in KB/s)."),
    "pcie_rx": ("PCIE_RX_THROUGHPUT", "PCIe bytes received (in KB/s)."),
    "pcie_replay": ("PCIE_REPLAY_COUNTER", "Total number of PCIe retries."),
    "utilization": ("GPU_UTIL", "GPU utilization (in %)."),
    "memory_utilization": ("MEM_COPY_UTIL", "Memory utilization (in %)."),
    "encoder": ("ENC_UTIL", "Encoder utilization (in %)."),
    "decoder": ("DEC_UTIL", "Decoder utilization (in %)."),
    "xid": ("XID_ERRORS", "Value of the last XID error encountered."),
    "power_violation": ("POWER_VIOLATION", "Throttling duration due to power constraints (in ns)."),
    "thermal_violation": (
        "THERMAL_VIOLATION",
        "Throttling duration due to thermal constraints (in ns).",
    ),
    "sync_violation": (
        "SYNC_BOOST_VIOLATION",
        "Throttling duration due to sync-boost constraints (in ns).",
    ),
    "memory_free": ("FB_FREE", "Framebuffer memory free (in MiB)."),
    "memory_used": ("FB_USED", "Framebuffer memory used (in MiB)."),
    "memory_reserved": ("FB_RESERVED", "Framebuffer memory reserved (in MiB)."),
    "ecc_volatile_corrected": (
        "ECC_SBE_VOL_TOTAL",
        "Total number of single-bit volatile ECC errors.",
    ),
    "ecc_volatile_uncorrected": (
        "ECC_DBE_VOL_TOTAL",
        "Total number of double-bit volatile ECC errors.",
    ),
    "nvlink": ("NVLINK_BANDWIDTH_TOTAL", "Total number of NVLink bandwidth counters for all lanes"),
    "vgpu_license": ("VGPU_LICENSE_STATUS", "vGPU License status"),
    "remapped_uncorrectable": (
        "UNCORRECTABLE_REMAPPED_ROWS",
        "Number of remapped rows for uncorrectable errors",
    ),
    "remapped_correctable": (
        "CORRECTABLE_REMAPPED_ROWS",
        "Number of remapped rows for correctable errors",
    ),
    "remap_failure": ("ROW_REMAP_FAILURE", "Whether remapping of rows has failed"),
    "remap_pending": ("ROW_REMAP_PENDING", "Whether a remapping of rows waits for a reset"),
    "throttle": ("CLOCKS_EVENT_REASONS", "Bit mask of what holds the clocks down."),
    "pcie_generation": ("PCIE_LINK_GEN", "PCIe generation of the link now."),
    "pcie_generation_max": ("PCIE_MAX_LINK_GEN", "PCIe generation that the link can have."),
    "pcie_width": ("PCIE_LINK_WIDTH", "PCIe lanes of the link now."),
    "pcie_width_max": ("PCIE_MAX_LINK_WIDTH", "PCIe lanes that the link can have."),
    "nvlinks_up": ("NVLINK_LINKS_UP", "Number of NVLinks that are up."),
    "nvlinks": ("NVLINK_LINKS", "Number of NVLinks that the card has."),
}
"""By key: the name after ``DCGM_FI_DEV_``, and the help."""
_PROFILED: Final = {
    "prof_graphics": ("GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active."),
    "prof_sm": ("SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned."),
    "prof_occupancy": ("SM_OCCUPANCY", "The ratio of number of warps resident on an SM."),
    "prof_tensor": ("PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active."),
    "prof_dram": (
        "DRAM_ACTIVE",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
    ),
    "prof_fp64": ("PIPE_FP64_ACTIVE", "Ratio of cycles the fp64 pipes are active."),
    "prof_fp32": ("PIPE_FP32_ACTIVE", "Ratio of cycles the fp32 pipes are active."),
    "prof_fp16": ("PIPE_FP16_ACTIVE", "Ratio of cycles the fp16 pipes are active."),
    "prof_pcie_tx": ("PCIE_TX_BYTES", "The rate of PCIe data sent (in bytes/s)."),
    "prof_pcie_rx": ("PCIE_RX_BYTES", "The rate of PCIe data received (in bytes/s)."),
    "prof_nvlink_tx": ("NVLINK_TX_BYTES", "The rate of NVLink data sent (in bytes/s)."),
    "prof_nvlink_rx": ("NVLINK_RX_BYTES", "The rate of NVLink data received (in bytes/s)."),
}
"""By key: the name after ``DCGM_FI_PROF_``, and the help."""
_COUNTERS: Final = {
    *("energy", "pcie_replay", "power_violation", "thermal_violation", "sync_violation"),
    *("ecc_volatile_corrected", "ecc_volatile_uncorrected", "nvlink", "remapped_uncorrectable"),
    *("remapped_correctable",),
}
_BY_SM: Final = {
    *("power", "pcie_tx", "pcie_rx", "utilization", "memory_utilization"),
}
_OLD: Final = {
    "sm_clock": "sm_clock",
    "memory_clock": "memory_clock",
    "temperature": "gpu_temp",
    "power": "power_usage",
    "fan": "fan_speed_percent",
    "pcie_tx": "pcie_tx_throughput",
    "pcie_rx": "pcie_rx_throughput",
    "pcie_replay": "pcie_replay_counter",
    "utilization": "gpu_utilization",
    "memory_utilization": "mem_copy_utilization",
    "encoder": "enc_utilization",
    "decoder": "dec_utilization",
    "xid": "xid_errors",
    "power_violation": "power_violation",
    "thermal_violation": "thermal_violation",
    "sync_violation": "sync_boost_violation",
    "memory_free": "fb_free",
    "memory_used": "fb_used",
}
_NEW: Final = {
    "power": "DEV_BOARD_POWER_WATTS",
    "pcie_replay": "DEV_PCIE_REPLAY_TOTAL",
    "xid": "DEV_XID_ERROR",
    "prof_graphics": "PROF_GR_ENGINE_UTIL_RATIO",
    "prof_sm": "PROF_SM_UTIL_RATIO",
    "prof_occupancy": "PROF_SM_OCCUPANCY_RATIO",
    "prof_tensor": "PROF_TENSOR_UTIL_RATIO",
    "prof_dram": "PROF_DRAM_UTIL_RATIO",
}


def _device(key: str, name: str, help_: str) -> Field:
    return Field(
        key,
        f"DCGM_FI_DEV_{name}",
        "counter" if key in _COUNTERS else "gauge",
        help_,
        old=f"dcgm_{_OLD[key]}" if key in _OLD else "",
        new=f"DCGM_FI_{_NEW[key]}" if key in _NEW else "",
        divisible="memory" if key == "memory_used" else "sm" if key in _BY_SM else "",
    )


def _profiled(key: str, name: str, help_: str) -> Field:
    new = f"DCGM_FI_{_NEW[key]}" if key in _NEW else ""
    return Field(key, f"DCGM_FI_PROF_{name}", "gauge", help_, new=new, divisible="sm")


FIELDS: tuple[Field, ...] = (
    *(_device(key, *about) for key, about in _DEVICE.items()),
    *(_profiled(key, *about) for key, about in _PROFILED.items()),
    Field(
        "xid_count",
        "DCGM_EXP_XID_ERRORS_COUNT",
        "gauge",
        "Count of XID errors since the agent started.",
    ),
)
