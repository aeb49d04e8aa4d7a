"""Stub GPUs: the library that `native/` builds, and what its cards say, settable while it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.waiting import stretched

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
BUILT = NATIVE / os.environ.get("LOCKSTEP_NATIVE_BUILD", "build")
"""Where `make -C native` puts what it builds; `make sanitize` names another place."""
LIBRARY = BUILT / "libnvidia-ml.so.1"
TENANT = BUILT / "tenant"
"""A program that uses CUDA's driver as its arguments say; ``native/tenant/tenant.c``."""
GIB = 1 << 30

Values = dict[str, object]


def build() -> Path:
    """Build the library where it is missing or old; return its directory.

    Without a C compiler the test is skipped.
    """
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) to build the stub GPUs with")
    done = subprocess.run(
        ["make", "-s", "-C", str(NATIVE), f"OUT={BUILT}"],
        capture_output=True,
        text=True,
        timeout=stretched(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return LIBRARY.parent


@dataclass
class StubGpus:
    """The cards of one stubbed machine; a change shows at the next call of the library."""

    file: Path
    values: Values = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the variables under which a process sees these cards."""
        found = os.environ.get("LD_LIBRARY_PATH", "")
        path = f"{build()}:{found}" if found else str(build())
        return {
            "LD_LIBRARY_PATH": path,
            "LOCKSTEP_NVML_STATE": str(self.file),
            "LOCKSTEP_CUDA_WORLD": str(self.world),
        }

    @property
    def world(self) -> Path:
        """The file in which the stub of CUDA keeps what all processes share."""
        return self.file.with_suffix(".world")

    def set(self, **values: object) -> None:
        """Set values of the library as a whole."""
        self.update(values)

    def card(self, index: int, values: Mapping[str, object]) -> None:
        """Set values of one card."""
        self.update({f"{index}.{key}": value for key, value in values.items()})

    def update(self, values: Mapping[str, object | None]) -> None:
        """Set values by their full keys; None takes one away."""
        self.values |= values
        self.values = {key: value for key, value in self.values.items() if value is not None}
        text = "".join(f"{key}={value}\n" for key, value in self.values.items())
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.file)

    def xid(self, index: int, code: int) -> None:
        """Let a card report an Xid."""
        number = sum(key.startswith("event.") for key in self.values) + 1
        self.update({f"event.{number}": f"{index},8,{code}"})


SYSTEM: Values = {
    "driver_version": "570.133.20",
    "nvml_version": "12.570.133.20",
    "cuda_version": 12080,
}


def _card(index: int, **more: object) -> Values:
    own: Values = {
        "uuid": f"GPU-00000000-0000-0000-0000-{index:012d}",
        "name": "NVIDIA H200",
        "serial": f"1650{index:09d}",
        "pci": f"00000000:{0x17 + 0x10 * index:02x}:00.0",
        "pci_id": 0x233510DE,
        "minor": index,
        "compute_major": 9,
        "compute_minor": 0,
        "architecture": 9,
        "memory": 141 * GIB,
        "memory_reserved": GIB // 2,
        "memory_used": 0,
        "utilization": 0,
        "utilization_memory": 0,
        "encoder": 0,
        "decoder": 0,
        "period": 167000,
        "clock.1": 1980,
        "clock.2": 3201,
        "temperature.0": 34 + index,
        "field.82": 40 + index,
        "field.74": 0,
        "field.75": 0,
        "field.76": 0,
        "field.138": 1000,
        "field.139": 2000,
        "field.3": 0,
        "field.4": 0,
        "power": 76_500,
        "power_limit": 700_000,
        "energy": 5_000_000 + index,
        "pcie_replay": 0,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "pcie_generation_max": 5,
        "pcie_generation": 5,
        "throttle": 1,
        "remapped_corrected": 0,
        "mig_mode": 0,
        "event_types": 0xFF,
        "gpm": 1,
        "gpm.1": 0,
        "gpm.2": 0,
        "gpm.3": 0,
        "gpm.5": 0,
        "gpm.10": 0,
        "gpm.11": 0,
        "gpm.12": 0,
        "gpm.13": 0,
        "gpm.20": 12.5,
        "gpm.21": 25,
        "gpm.60": 0,
        "gpm.61": 0,
        **more,
    }
    return {f"{index}.{key}": value for key, value in own.items()}


def _linked(*indices: int) -> Values:
    """Return that these cards reach each other over NVLink and PCI, through a switch."""
    pairs = [(a, b) for a in indices for b in indices if a != b]
    p2p: Values = {f"{a}.p2p.{b}.{what}": 0 for a, b in pairs for what in (0, 1, 2)}
    links: Values = {f"{a}.nvlink.state.{link}": 1 for a in indices for link in range(18)}
    beyond: Values = {f"{a}.nvlink.remote_type.{link}": 2 for a in indices for link in range(18)}
    return p2p | links | beyond


def one() -> Values:
    """Return a single card."""
    return {**SYSTEM, "count": 1, **_card(0)}


def two() -> Values:
    """Return two cards that reach each other over NVLink."""
    return {**SYSTEM, "count": 2, **_card(0), **_card(1), **_linked(0, 1)}


def h200x8() -> Values:
    """Return a node of eight."""
    cards = [_card(index) for index in range(8)]
    whole: Values = {**SYSTEM, "count": 8, **_linked(*range(8))}
    for card in cards:
        whole |= card
    return whole


A100: Values = {
    "name": "NVIDIA A100-SXM4-80GB",
    "memory": 80 * GIB,
    "compute_major": 8,
    "architecture": 7,
    "gpm": None,
}


def a100_mig() -> Values:
    """Return an A100 split into 3g.40gb, 2g.20gb and 1g.10gb, and one that is whole; no GPM."""
    split: Values = {"mig_mode": 1, "mig_max": 7, "utilization": None}
    for number, (slices, memory) in enumerate(((3, 40), (2, 20), (1, 10))):
        split |= {
            f"mig.{number}.uuid": f"MIG-00000000-0000-0000-0000-{number:012d}",
            f"mig.{number}.gi": number + 1,
            f"mig.{number}.ci": 0,
            f"mig.{number}.memory": memory * GIB - 256 * (1 << 20),
            f"mig.{number}.memory_used": number * GIB,
            f"mig.{number}.gi_slices": slices,
            f"mig.{number}.ci_slices": slices,
        }
    return _without({**SYSTEM, "count": 2, **_card(0, **A100, **split), **_card(1, **A100)})


def mixed() -> Values:
    """Return an H200 beside an old card that supports little."""
    old: Values = {"name": "Tesla T4", "memory": 15 * GIB, "compute_major": 7, "compute_minor": 5}
    silent = ("gpm", "field.82", "energy", "mig_mode", "remapped_corrected", "field.138")
    return _without({**SYSTEM, "count": 2, **_card(0), **_card(1, **old, **dict.fromkeys(silent))})


def broken() -> Values:
    """Return four cards: sound, fallen off the bus, hanging for 10 s, and lying."""
    return {
        **SYSTEM,
        "count": 4,
        **_card(0),
        **_card(1, lost=1),
        **_card(2, **{"delay.*": 10_000}),
        **_card(3, memory_used=300 * GIB, utilization=4_000),
    }


def _without(values: Values) -> Values:
    return {key: value for key, value in values.items() if value is not None}
