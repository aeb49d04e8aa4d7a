"""What is measured of a card, under dcgm-exporter's names, types, units and words.

``key`` is the reading's name inside Lockstep. ``old`` is the name of dcgm-exporter 1.x, ``new``
that of DCGM 4.6. ``divisible`` readings of a shared card are split by what its processes used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Divisor = Literal["", "sm", "memory"]


@dataclass(frozen=True, slots=True)
class Field:
    """One metric."""

    key: str
    name: str
    kind: Literal["gauge", "counter"]
    help: str
    old: str = ""
    new: str = ""
    divisible: Divisor = ""


def _dev(key: str, name: str, help_: str, **more: str) -> Field:
    kind = "counter" if more.pop("counter", "") else "gauge"
    return Field(key, f"DCGM_FI_DEV_{name}", kind, help_, **more)  # type: ignore[arg-type]


def _prof(key: str, name: str, help_: str, *, new: str = "", split: Divisor = "sm") -> Field:
    full = f"DCGM_FI_PROF_{new}" if new else ""
    return Field(key, f"DCGM_FI_PROF_{name}", "gauge", help_, "", full, split)


FIELDS: tuple[Field, ...] = (
    _dev("sm_clock", "SM_CLOCK", "SM clock frequency (in MHz).", old="dcgm_sm_clock"),
    _dev("memory_clock", "MEM_CLOCK", "Memory clock frequency (in MHz).", old="dcgm_memory_clock"),
    _dev("memory_temperature", "MEMORY_TEMP", "Memory temperature (in C)."),
    _dev("temperature", "GPU_TEMP", "GPU temperature (in C).", old="dcgm_gpu_temp"),
    _dev(
        "power",
        "POWER_USAGE",
        "Power draw (in W).",
        old="dcgm_power_usage",
        new="DCGM_FI_DEV_BOARD_POWER_WATTS",
        divisible="sm",
    ),
    _dev(
        "energy",
        "TOTAL_ENERGY_CONSUMPTION",
        "Total energy consumption since boot (in mJ).",
        counter="yes",
    ),
    _dev(
        "fan",
        "FAN_SPEED",
        "Fan speed for the device in percent 0-100.",
        old="dcgm_fan_speed_percent",
    ),
    _dev(
        "pcie_tx",
        "PCIE_TX_THROUGHPUT",
        "PCIe bytes sent (in KB/s).",
        old="dcgm_pcie_tx_throughput",
        divisible="sm",
    ),
    _dev(
        "pcie_rx",
        "PCIE_RX_THROUGHPUT",
        "PCIe bytes received (in KB/s).",
        old="dcgm_pcie_rx_throughput",
        divisible="sm",
    ),
    _dev(
        "pcie_replay",
        "PCIE_REPLAY_COUNTER",
        "Total number of PCIe retries.",
        old="dcgm_pcie_replay_counter",
        new="DCGM_FI_DEV_PCIE_REPLAY_TOTAL",
        counter="yes",
    ),
    _dev(
        "utilization",
        "GPU_UTIL",
        "GPU utilization (in %).",
        old="dcgm_gpu_utilization",
        divisible="sm",
    ),
    _dev(
        "memory_utilization",
        "MEM_COPY_UTIL",
        "Memory utilization (in %).",
        old="dcgm_mem_copy_utilization",
        divisible="sm",
    ),
    _dev("encoder", "ENC_UTIL", "Encoder utilization (in %).", old="dcgm_enc_utilization"),
    _dev("decoder", "DEC_UTIL", "Decoder utilization (in %).", old="dcgm_dec_utilization"),
    _dev(
        "xid",
        "XID_ERRORS",
        "Value of the last XID error encountered.",
        old="dcgm_xid_errors",
        new="DCGM_FI_DEV_XID_ERROR",
    ),
    _dev(
        "power_violation",
        "POWER_VIOLATION",
        "Throttling duration due to power constraints (in ns).",
        old="dcgm_power_violation",
        counter="yes",
    ),
    _dev(
        "thermal_violation",
        "THERMAL_VIOLATION",
        "Throttling duration due to thermal constraints (in ns).",
        old="dcgm_thermal_violation",
        counter="yes",
    ),
    _dev(
        "sync_violation",
        "SYNC_BOOST_VIOLATION",
        "Throttling duration due to sync-boost constraints (in ns).",
        old="dcgm_sync_boost_violation",
        counter="yes",
    ),
    _dev("memory_free", "FB_FREE", "Framebuffer memory free (in MiB).", old="dcgm_fb_free"),
    _dev(
        "memory_used",
        "FB_USED",
        "Framebuffer memory used (in MiB).",
        old="dcgm_fb_used",
        divisible="memory",
    ),
    _dev("memory_reserved", "FB_RESERVED", "Framebuffer memory reserved (in MiB)."),
    _dev(
        "ecc_volatile_corrected",
        "ECC_SBE_VOL_TOTAL",
        "Total number of single-bit volatile ECC errors.",
        counter="yes",
    ),
    _dev(
        "ecc_volatile_uncorrected",
        "ECC_DBE_VOL_TOTAL",
        "Total number of double-bit volatile ECC errors.",
        counter="yes",
    ),
    _dev(
        "nvlink",
        "NVLINK_BANDWIDTH_TOTAL",
        "Total number of NVLink bandwidth counters for all lanes",
        counter="yes",
    ),
    _dev("vgpu_license", "VGPU_LICENSE_STATUS", "vGPU License status"),
    _dev(
        "remapped_uncorrectable",
        "UNCORRECTABLE_REMAPPED_ROWS",
        "Number of remapped rows for uncorrectable errors",
        counter="yes",
    ),
    _dev(
        "remapped_correctable",
        "CORRECTABLE_REMAPPED_ROWS",
        "Number of remapped rows for correctable errors",
        counter="yes",
    ),
    _dev("remap_failure", "ROW_REMAP_FAILURE", "Whether remapping of rows has failed"),
    _dev("remap_pending", "ROW_REMAP_PENDING", "Whether a remapping of rows waits for a reset"),
    _dev("throttle", "CLOCKS_EVENT_REASONS", "Bit mask of what holds the clocks down."),
    _dev("pcie_generation", "PCIE_LINK_GEN", "PCIe generation of the link now."),
    _dev("pcie_generation_max", "PCIE_MAX_LINK_GEN", "PCIe generation that the link can have."),
    _dev("pcie_width", "PCIE_LINK_WIDTH", "PCIe lanes of the link now."),
    _dev("pcie_width_max", "PCIE_MAX_LINK_WIDTH", "PCIe lanes that the link can have."),
    _dev("nvlinks_up", "NVLINK_LINKS_UP", "Number of NVLinks that are up."),
    _dev("nvlinks", "NVLINK_LINKS", "Number of NVLinks that the card has."),
    _prof(
        "prof_graphics",
        "GR_ENGINE_ACTIVE",
        "Ratio of time the graphics engine is active.",
        new="GR_ENGINE_UTIL_RATIO",
    ),
    _prof(
        "prof_sm",
        "SM_ACTIVE",
        "The ratio of cycles an SM has at least 1 warp assigned.",
        new="SM_UTIL_RATIO",
    ),
    _prof(
        "prof_occupancy",
        "SM_OCCUPANCY",
        "The ratio of number of warps resident on an SM.",
        new="SM_OCCUPANCY_RATIO",
    ),
    _prof(
        "prof_tensor",
        "PIPE_TENSOR_ACTIVE",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        new="TENSOR_UTIL_RATIO",
    ),
    _prof(
        "prof_dram",
        "DRAM_ACTIVE",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        new="DRAM_UTIL_RATIO",
    ),
    _prof("prof_fp64", "PIPE_FP64_ACTIVE", "Ratio of cycles the fp64 pipes are active."),
    _prof("prof_fp32", "PIPE_FP32_ACTIVE", "Ratio of cycles the fp32 pipes are active."),
    _prof("prof_fp16", "PIPE_FP16_ACTIVE", "Ratio of cycles the fp16 pipes are active."),
    _prof("prof_pcie_tx", "PCIE_TX_BYTES", "The rate of PCIe data sent (in bytes/s)."),
    _prof("prof_pcie_rx", "PCIE_RX_BYTES", "The rate of PCIe data received (in bytes/s)."),
    _prof("prof_nvlink_tx", "NVLINK_TX_BYTES", "The rate of NVLink data sent (in bytes/s)."),
    _prof("prof_nvlink_rx", "NVLINK_RX_BYTES", "The rate of NVLink data received (in bytes/s)."),
    Field(
        "xid_count",
        "DCGM_EXP_XID_ERRORS_COUNT",
        "gauge",
        "Count of XID errors since the agent started.",
    ),
)
