"""Which processes make up the embedded control plane."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from lockstep.cli.up.child import Part
from lockstep.compat.dialects import DIALECTS

RECORDS = "usage.db"
"""File of the usage records in the data folder."""
AUDIT = "audit.log"
"""File in which the API server writes who changed what."""
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
    pools: tuple[str, ...] = ()
    """Simulated node pools, as they were given."""
    process_node: bool = True
    devices: bool = False
    """Whether this machine has devices that an agent can find."""
    router_port: int = 0
    console_port: int = 0
    gateway_port: int = 0
    host: str = HOST
    """Address at which the API server listens."""
    images: Path | None = None
    """Table of what the process node runs for images."""

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
    where = ("--host", settings.host, "--port", str(settings.port))
    audit = ("--audit-log", str(settings.data / AUDIT))
    return _part("apiserver", "--data", str(settings.data), *where, *audit)


def others(settings: Settings) -> list[Part]:
    """Return the parts that need the API server, each with its own user."""

    def user(name: str) -> tuple[str, str]:
        return ("--kubeconfig", str(settings.data / "kubeconfigs" / f"{name}.kubeconfig"))

    alone = "--no-leader-elect"
    parts = [
        _part("scheduler", *user("scheduler"), alone, "--serve", "default-scheduler"),
        _part("controllers", *user("controllers"), alone, "--node-lifecycle", *_beyond(settings)),
        _part("gateway", *user("gateway"), "--port", str(settings.gateway_port)),
    ]
    port = str(settings.router_port)
    parts.append(_part("router", *user("router"), "--port", port, "--name", "embedded"))
    port, state = str(settings.console_port), str(settings.data / "console")
    records = ("--records", str(settings.data / RECORDS))
    audit = ("--audit-log", str(settings.data / AUDIT))
    serving = ("--serve", "--port", port, "--state", state, *records, *audit)
    parts.append(_part("console", *user("console"), *serving))
    if settings.process_node:
        name = "process-node"
        where = ("--data", str(settings.data / "node"), "--hide", str(settings.data))
        pair = settings.data / "pki" / "node-agent"
        shown = ("--certificate", f"{pair}.crt", "--key", f"{pair}.key")
        cache = ("--data-cache", user("data-cache")[1])
        table = ("--images", str(settings.images.absolute())) if settings.images else ()
        parts.append(_part(name, *user(name), *where, *cache, *shown, *table, grace=NODE_GRACE))
        if settings.devices:
            shares = ("--shares", str(settings.data / "node/shares"))
            parts.append(_part("agent", *user("agent"), "--any-port", *shares))
    if settings.simulate or settings.pools:
        name, spec = "simulate-nodes", [settings.simulate] if settings.simulate else []
        parts.append(_part(name, *spec, *user(name)))
    return parts


def _beyond(settings: Settings) -> tuple[str, ...]:
    """Return what the controllers do on this machine beyond what they do on a cluster."""
    records = str(settings.data / RECORDS)
    gateway = f"http://{HOST}:{settings.gateway_port}"
    # Not in the data folder, which pods see empty.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kernels = ("--gateway", gateway, "--environments", str(cache / "lockstep" / "environments"))
    shown = ("--metrics-port", "0")
    return ("--install-dialects", ",".join(DIALECTS), "--records", records, *shown, *kernels)


def _part(name: str, *arguments: str, grace: float = GRACE) -> Part:
    # -P keeps the working directory, where anything may lie, off the import path.
    command = (sys.executable, "-P", "-m", "lockstep", name, *arguments, "--leashed")
    return Part(name, command, grace)
