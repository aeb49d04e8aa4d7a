"""``agent``: the node agent, or once what it would find."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.failure import BadInput
from lockstep.cli.foreground import announce, serve
from lockstep.cli.options import Kubeconfig, Leashed, Verbose
from lockstep.cli.output import Format, print_objects

app = typer.Typer(rich_markup_mode=None)

METRICS_PORT = 9400
"""Where dcgm-exporter is scraped too."""


class CompatName(StrEnum):
    """Whose metrics ours look like."""

    NONE = ""
    DCGM3 = "dcgm3"
    DCGM46 = "dcgm4.6"


@app.command()
def agent(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print the devices and end.")] = False,
    output: Annotated[Format, typer.Option("--output", "-o", help="json or yaml.")] = Format.JSON,
    root: Annotated[
        Path, typer.Option(help="With --once: a directory with another machine's sys and proc.")
    ] = Path("/"),
    kubeconfig: Kubeconfig = None,
    node: Annotated[
        str | None, typer.Option(help="Name of the node; the host's name by default.")
    ] = None,
    metrics_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Serve metrics on this port of loopback.")
    ] = METRICS_PORT,
    any_port: Annotated[
        bool, typer.Option("--any-port", help="Take a free port where that one is taken.")
    ] = False,
    probe_port: Annotated[
        int | None, typer.Option(help="Answer /healthz and /readyz on this port of every address.")
    ] = None,
    secure_metrics_port: Annotated[
        int | None,
        typer.Option(
            help="Serve metrics over TLS on this port of every address, to whom the API server "
            "lets get the URL /metrics."
        ),
    ] = None,
    metrics_certificate: Annotated[
        Path | None,
        typer.Option(help="Directory with tls.crt and tls.key for them; an own one by default."),
    ] = None,
    kubelet: Annotated[
        Path | None,
        typer.Option(help="Hand devices out through the kubelet with this directory."),
    ] = None,
    cdi: Annotated[
        Path | None,
        typer.Option(help="Write CDI specifications of claims here; /var/run/cdi by default."),
    ] = None,
    shares: Annotated[
        Path | None,
        typer.Option(
            help="Grant the shares of GPUs that this node's containers have here; below the "
            "kubelet's directory where there is one."
        ),
    ] = None,
    kernel_log: Annotated[
        Path | None,
        typer.Option(help="Read the kernel's messages here; /dev/kmsg where it may be read."),
    ] = None,
    reset_hook: Annotated[
        Path | None,
        typer.Option(
            help="Program that resets the device that is its argument (gpu/3; empty: the node), "
            "where a HealthPolicy asks for it."
        ),
    ] = None,
    compat: Annotated[
        CompatName,
        typer.Option(help="dcgm3 writes the label Hostname, dcgm4.6 the names of DCGM 4.6."),
    ] = CompatName.NONE,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Find this node's devices, hand them out and say what they do.

    \b
    Examples:
      lockstep agent --once -o json
      lockstep agent --node gpu-1 --kubelet /var/lib/kubelet
    """
    if once:
        _print(root, output)
        return
    if root != Path("/"):
        raise BadInput("--root is for --once alone: an agent runs on its own machine")
    from lockstep.agent.main import run
    from lockstep.agent.node import Settings
    from lockstep.health.kernel_log import readable
    from lockstep.kube.endpoints import Ports
    from lockstep.kube.listener import free_or
    from lockstep.nodes.process.machine_info import node_name

    port = free_or(metrics_port) if any_port else metrics_port
    settings = Settings(
        node_name(node),
        Ports(port, probe_port, secure_metrics_port, metrics_certificate),
        compat.value,
        kubelet,
        shares or (kubelet / "lockstep-shares" if kubelet else None),
        kernel_log or readable(),
        reset_hook,
        cdi,
    )
    part = run(kubeconfig=kubeconfig, settings=settings, ready=announce)
    serve(part, leashed=leashed, verbose=verbose)


def _print(root: Path, output: Format) -> None:
    if output not in (Format.JSON, Format.YAML):
        raise BadInput("--output: devices are printed as json or yaml")
    if not (root / "sys").is_dir():
        raise BadInput(f"--root: {root} has no directory sys")
    from lockstep.api.wire import to_builtins
    from lockstep.devices.finding import find

    print_objects([to_builtins(find(root))], output, single=True)
