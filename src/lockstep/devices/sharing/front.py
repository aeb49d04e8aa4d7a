"""Where the front lies, and the driver's own libraries that it stands before."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lockstep.devices.driver import library

CUDA: Final = "libcuda.so.1"
NVML: Final = "libnvidia-ml.so.1"
VARIABLE: Final = "LOCKSTEP_FRONT"
CURRENT: Final = "current"
"""Symbolic link beside the fronts that were laid on a node: the one for containers that start."""


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
    cuda = library(CUDA, environment, found)
    if cuda is None:
        raise NoFront(f"this node has no {CUDA}, NVIDIA's driver")
    nvml = library(NVML, environment, found)
    return Front(found.resolve(), cuda.on_node, nvml.on_node if nvml is not None else None)


def lay(target: Path) -> Path | None:
    """Lay the front of this installation below *target*; return its directory, none without one.

    Each front has a directory named after what it holds: containers keep the one that they
    started with, for those after them the link ``current`` leads to the new one.
    """
    found = next((one for one in _places() if (one / CUDA).exists()), None)
    if found is None:
        return None
    libraries = sorted(one for one in found.iterdir() if one.is_file())
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in libraries)).hexdigest()[:16]
    place = target / digest
    if not place.exists():
        draft = target / f".{digest}.{os.getpid()}"
        draft.mkdir(parents=True)
        for one in libraries:
            # A link stays one: two copies in one process would be two fronts.
            shutil.copyfile(one, draft / one.name, follow_symlinks=False)
            if not one.is_symlink():
                (draft / one.name).chmod(0o755)
        draft.chmod(0o755)
        with contextlib.suppress(OSError):  # another one has laid the same
            draft.rename(place)
        shutil.rmtree(draft, ignore_errors=True)
    link = target / f".{CURRENT}.{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(digest)
    link.replace(target / CURRENT)
    return place


def told(share: Path, cuda: Path, nvml: Path | None) -> dict[str, str]:
    """Return the variables by which the front finds a share and the real libraries."""
    found = {
        "LOCKSTEP_SHARE": str(share),
        "LOCKSTEP_DRIVER": str(cuda),
    }
    return {**found, "LOCKSTEP_NVML": str(nvml)} if nvml is not None else found


def inside(place: Path, file: Path) -> Path:
    """Return where a container sees a *file* of its share, below *place*."""
    return place / f"one{file.suffix}"


def _places() -> list[Path]:
    sources = Path(__file__).resolve().parents[4] / "native/build/front"
    return [Path(sys.prefix) / "lib/lockstep/front", Path("/usr/lib/lockstep/front"), sources]
