"""Where the front lies, and the driver's own libraries that it stands before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CUDA: Final = "libcuda.so.1"
NVML: Final = "libnvidia-ml.so.1"
VARIABLE: Final = "LOCKSTEP_FRONT"
_DIRECTORIES: Final = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib",
)


class NoFront(Exception):
    """A share cannot be held on this node; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Front:
    """The directory of the front's libraries, and the paths of the real ones."""

    directory: Path
    cuda: Path
    nvml: Path | None = None


def find(environment: Mapping[str, str] = os.environ) -> Front:
    """Return the front of this node.

    It is in ``$LOCKSTEP_FRONT``, below the prefix of the installation, or built in the sources.

    Raises:
        NoFront: when it or the driver is missing.
    """
    given = environment.get(VARIABLE)
    places = [Path(given)] if given else _places()
    found = next((one for one in places if (one / CUDA).exists()), None)
    if found is None:
        tried = ", ".join(map(str, places))
        raise NoFront(
            f"the front that holds shares of GPUs is not in {tried}; build it with "
            f"`make -C native front` or name its directory in {VARIABLE}"
        )
    cuda = _library(CUDA, environment, found)
    if cuda is None:
        raise NoFront(f"this node has no {CUDA}, NVIDIA's driver")
    return Front(found.resolve(), cuda, _library(NVML, environment, found))


def told(share: Path, bell: Path, cuda: Path, nvml: Path | None) -> dict[str, str]:
    """Return the variables by which the front finds a share and the real libraries."""
    found = {
        "LOCKSTEP_SHARE": str(share),
        "LOCKSTEP_BELL": str(bell),
        "LOCKSTEP_DRIVER": str(cuda),
    }
    return {**found, "LOCKSTEP_NVML": str(nvml)} if nvml is not None else found


def _places() -> list[Path]:
    sources = Path(__file__).resolve().parents[4] / "native/build/front"
    return [Path(sys.prefix) / "lib/lockstep/front", Path("/usr/lib/lockstep/front"), sources]


def _library(name: str, environment: Mapping[str, str], front: Path) -> Path | None:
    listed = environment.get("LD_LIBRARY_PATH", "").split(":")
    for directory in _without([*listed, *_DIRECTORIES], front):
        path = directory / name
        if path.exists():
            return path.resolve()
    return None


def _without(directories: Iterable[str], front: Path) -> list[Path]:
    found = [Path(one) for one in directories if one]
    return [one for one in found if one.resolve() != front.resolve()]
