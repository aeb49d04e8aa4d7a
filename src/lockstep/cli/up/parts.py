"""Which processes make up the embedded control plane."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from lockstep.cli.up.child import Part

HOST = "127.0.0.1"
GRACE = 10.0
NODE_GRACE = 20.0
"""Seconds that the process node has for ending its pods."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``lockstep up`` was asked for."""

    data: Path
    port: int
    kubeconfig: Path | None = None
    simulate: str | None = None
    process_node: bool = True

    @property
    def admin_kubeconfig(self) -> Path:
        """The kubeconfig that the API server writes."""
        return self.data / "kubeconfig"

    @property
    def log_dir(self) -> Path:
        """Where the processes' logs are."""
        return self.data / "log"


def api_server(settings: Settings) -> Part:
    """Return the part that all others talk to."""
    where = ("--host", HOST, "--port", str(settings.port))
    return _part("apiserver", "--data", str(settings.data), *where)


def others(settings: Settings) -> list[Part]:
    """Return the parts that need the API server, each with its own user."""

    def user(name: str) -> tuple[str, str]:
        return ("--kubeconfig", str(settings.data / "kubeconfigs" / f"{name}.kubeconfig"))

    parts = [_part(n, *user(n), "--no-leader-elect") for n in ("scheduler", "controllers")]
    if settings.process_node:
        name = "process-node"
        where = ("--data", str(settings.data / "node"))
        parts.append(_part(name, *user(name), *where, grace=NODE_GRACE))
    if settings.simulate:
        name = "simulate-nodes"
        parts.append(_part(name, settings.simulate, *user(name)))
    return parts


def _part(name: str, *arguments: str, grace: float = GRACE) -> Part:
    # -P keeps the working directory, where anything may lie, off the import path.
    command = (sys.executable, "-P", "-m", "lockstep", name, *arguments, "--leashed")
    return Part(name, command, grace)
