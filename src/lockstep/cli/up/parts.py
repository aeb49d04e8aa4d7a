"""Which processes make up the embedded control plane."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lockstep.cli.up.child import Part
from lockstep.compat.dialects import DIALECTS
from lockstep.kube.locate import embedded_data

RECORDS = "usage.db"
"""File of the usage records in the data folder."""
AUDIT = "audit.log"
ARTEFACTS = "artefacts"
"""File in which the API server writes who changed what."""
HOST = "127.0.0.1"
GRACE = 10.0
NODE_GRACE = 20.0
"""Seconds that the process node has for ending its pods."""


DEFAULT_PORT = 7443
DEFAULT_ROUTER_PORT = 7480
DEFAULT_CONSOLE_PORT = 7490
DEFAULT_GATEWAY_PORT = 7485

Data = Annotated[
    Path | None,
    typer.Option(
        help="Directory of everything that lasts; $XDG_DATA_HOME/lockstep by default.",
        show_default=False,
    ),
]


def _port(what: str, default: int) -> Any:
    told = f"Port on loopback at which {what} reached; {default}, or a free one with --port 0."
    return typer.Option(min=0, max=65535, help=told, show_default=False)


@dataclass(frozen=True, slots=True)
class Plane:
    """What runs, and where."""

    data: Data = None
    port: Annotated[int, range(65536), "Port on loopback; 0 chooses a free one."] = DEFAULT_PORT
    host: Annotated[
        str, "Address at which the API server listens; the other parts stay on loopback."
    ] = HOST
    router_port: Annotated[int | None, _port("services are", DEFAULT_ROUTER_PORT)] = None
    console_port: Annotated[int | None, _port("the console is", DEFAULT_CONSOLE_PORT)] = None
    gateway_port: Annotated[
        int | None, _port("notebooks and kernels are", DEFAULT_GATEWAY_PORT)
    ] = None
    kubeconfig: Annotated[
        Path | None, "Write the kubeconfig here too, besides DATA/kubeconfig."
    ] = None
    simulate: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Simulate nodes: NODESxGPUS with options, or a file.",
            show_default=False,
        ),
    ] = None
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="Simulate a pool of nodes that exist only while jobs need them: "
            "NAME=MIN..MAXxGPUS with options; may be repeated.",
            show_default=False,
        ),
    ] = None
    process_node: Annotated[
        bool, "--process-node/--no-process-node", "Let this machine run pods as processes."
    ] = True
    images: Annotated[
        Path | None,
        typer.Option(
            help="Table of what pods run here for images, before the shipped one (YAML).",
            exists=True,
            show_default=False,
        ),
    ] = None

    devices: bool = False
    """Whether this machine has devices that an agent can find."""

    @property
    def ports(self) -> dict[str, int]:
        """Return the ports of router, console and gateway by option.

        A port that is not stated is the usual one, or a free one with --port 0.
        """
        usual = {
            "--router-port": (self.router_port, DEFAULT_ROUTER_PORT),
            "--console-port": (self.console_port, DEFAULT_CONSOLE_PORT),
            "--gateway-port": (self.gateway_port, DEFAULT_GATEWAY_PORT),
        }
        return {
            option: stated if stated is not None else default if self.port else 0
            for option, (stated, default) in usual.items()
        }

    @property
    def arguments(self) -> list[str]:
        """Return the command line that asks for the same."""
        found = ["up", "--data", str(self.directory), "--port", str(self.port), "--host", self.host]
        found += [word for option, port in self.ports.items() for word in (option, str(port))]
        for option, path in (("--kubeconfig", self.kubeconfig), ("--images", self.images)):
            found += [option, str(path.absolute())] if path is not None else []
        found += ["--simulate", self.simulate] if self.simulate is not None else []
        found += [word for pool in self.pool or () for word in ("--pool", pool)]
        return [*found, *([] if self.process_node else ["--no-process-node"])]

    @property
    def admin_kubeconfig(self) -> Path:
        """The kubeconfig that the API server writes."""
        return self.directory / "kubeconfig"

    @property
    def log_dir(self) -> Path:
        """Where the processes' logs are."""
        return self.directory / "log"

    @property
    def directory(self) -> Path:
        """Return where everything lies that lasts."""
        return (self.data or embedded_data()).absolute()


def api_server(settings: Plane) -> Part:
    """Return the part that all others talk to."""
    where = ("--host", settings.host, "--port", str(settings.port))
    audit = ("--audit-log", str(settings.directory / AUDIT))
    return _part("apiserver", "--data", str(settings.directory), *where, *audit)


def others(settings: Plane) -> list[Part]:
    """Return the parts that need the API server, each with its own user."""

    def user(name: str) -> tuple[str, str]:
        return ("--kubeconfig", str(settings.directory / "kubeconfigs" / f"{name}.kubeconfig"))

    alone = "--no-leader-elect"
    parts = [
        _part("scheduler", *user("scheduler"), alone, "--serve", "default-scheduler"),
        _part("controllers", *user("controllers"), alone, "--node-lifecycle", *_beyond(settings)),
        _part("gateway", *user("gateway"), "--port", str(settings.ports["--gateway-port"])),
    ]
    port = str(settings.ports["--router-port"])
    parts.append(_part("router", *user("router"), "--port", port, "--name", "embedded"))
    port, state = str(settings.ports["--console-port"]), str(settings.directory / "console")
    records = ("--records", str(settings.directory / RECORDS))
    audit = ("--audit-log", str(settings.directory / AUDIT))
    serving = ("--serve", "--port", port, "--state", state, *records, *audit)
    parts.append(_part("console", *user("console"), *serving))
    if settings.process_node:
        name = "process-node"
        own = ("--by-namespace", str(settings.directory / ARTEFACTS))
        where = ("--data", str(settings.directory / "node"), "--hide", str(settings.directory))
        pair = settings.directory / "pki" / "node-agent"
        shown = ("--certificate", f"{pair}.crt", "--key", f"{pair}.key")
        cache = ("--data-cache", user("data-cache")[1])
        table = ("--images", str(settings.images.absolute())) if settings.images else ()
        parts.append(
            _part(name, *user(name), *where, *own, *cache, *shown, *table, grace=NODE_GRACE)
        )
        if settings.devices:
            shares = ("--shares", str(settings.directory / "node/shares"))
            parts.append(_part("agent", *user("agent"), "--any-port", *shares))
    if settings.simulate or settings.pool:
        name, spec = "simulate-nodes", [settings.simulate] if settings.simulate else []
        parts.append(_part(name, *spec, *user(name)))
    return parts


def _beyond(settings: Plane) -> tuple[str, ...]:
    """Return what the controllers do on this machine beyond what they do on a cluster."""
    records = str(settings.directory / RECORDS)
    gateway = f"http://{HOST}:{settings.ports['--gateway-port']}"
    # Not in the data folder, which pods see empty.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kernels = ("--gateway", gateway, "--environments", str(cache / "lockstep" / "environments"))
    shown = ("--metrics-port", "0", "--artefacts", str(settings.directory / ARTEFACTS))
    return ("--install-dialects", ",".join(DIALECTS), "--records", records, *shown, *kernels)


def _part(name: str, *arguments: str, grace: float = GRACE) -> Part:
    # -P keeps the working directory, where anything may lie, off the import path.
    command = (sys.executable, "-P", "-m", "lockstep", name, *arguments, "--leashed")
    return Part(name, command, grace)
