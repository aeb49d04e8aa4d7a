"""Where the libraries of NVIDIA's driver lie on the node, also as a container there sees it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST: Final = "LOCKSTEP_HOST"
"""Where the node's root directory is mounted; unset on the node itself."""
DRIVER_ROOT: Final = "LOCKSTEP_DRIVER_ROOT"
"""Below which directory of the node the driver is installed; / by default."""
_DIRECTORIES: Final = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib",
)
_LONGEST_CHAIN: Final = 16
"""Symbolic links behind each other that are followed."""


@dataclass(frozen=True, slots=True)
class Library:
    """One library of the driver."""

    here: Path
    """Where this process reads it."""
    on_node: Path
    """Where the node has it."""


def library(
    name: str, environment: Mapping[str, str] = os.environ, without: Path | None = None
) -> Library | None:
    """Return the driver's library *name*; the directory *without* is not looked at."""
    host = environment.get(HOST, "").rstrip("/")
    apart = without.resolve() if without is not None else None
    for directory in _directories(environment, host):
        path = Path(f"{host}{directory}", name)
        if path.parent.resolve() != apart and (found := _resolved(path, host)) is not None:
            return Library(found, Path(str(found).removeprefix(host)))
    return None


def _directories(environment: Mapping[str, str], host: str) -> Iterator[str]:
    if not host:
        listed: Iterable[str] = environment.get("LD_LIBRARY_PATH", "").split(":")
        yield from (one for one in listed if one)
    root = environment.get(DRIVER_ROOT, "").rstrip("/")
    yield from (f"{root}{one}" for one in _DIRECTORIES)


def _resolved(path: Path, host: str) -> Path | None:
    """Return the file behind symbolic links, which lead through the node's own root directory."""
    if not host:
        return path.resolve() if path.exists() else None
    for _ in range(_LONGEST_CHAIN):
        if not path.is_symlink():
            return path if path.exists() else None
        target = path.readlink()
        path = Path(f"{host}{target}") if target.is_absolute() else path.parent / target
    return None
