"""``agent``: the node agent, or once what it would find."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from lockstep.cli.app import App
from lockstep.cli.failure import BadInput
from lockstep.cli.output import Format, note, print_lines, print_objects
from lockstep.cli.part_options import Beyond, Running
from lockstep.cli.target import Kubeconfig

app = App()

METRICS_PORT = 9400
"""Where dcgm-exporter is scraped too."""
PROCESS = "lockstep.cli.agent_process"


@app.command()
def agent(
    *,
    once: Annotated[bool, "--once", "Print the devices and end."] = False,
    output: Annotated[Format, "--output", "-o", "json or yaml."] = Format.JSON,
    root: Annotated[Path, "With --once: a directory with another machine's sys and proc."] = Path(
        "/"
    ),
    kubeconfig: Kubeconfig = None,
    node: Annotated[str | None, "Name of the node; the host's name by default."] = None,
    metrics_port: Annotated[
        int, range(65536), "Serve metrics on this port of loopback."
    ] = METRICS_PORT,
    any_port: Annotated[bool, "--any-port", "Take a free port where that one is taken."] = False,
    endpoints: Beyond,
    kubelet: Annotated[
        Path | None, "Hand devices out through the kubelet with this directory."
    ] = None,
    cdi: Annotated[
        Path | None, "Write CDI specifications of claims here; /var/run/cdi by default."
    ] = None,
    shares: Annotated[
        Path | None,
        "Grant the shares of GPUs that this node's containers have here; below the "
        "kubelet's directory where there is one.",
    ] = None,
    kernel_log: Annotated[
        Path | None, "Read the kernel's messages here; /dev/kmsg where it may be read."
    ] = None,
    reset_hook: Annotated[
        Path | None,
        "Program that resets the device that is its argument (gpu/3; empty: the node), "
        "where a HealthPolicy asks for it.",
    ] = None,
    compat: Annotated[
        Literal["", "dcgm3", "dcgm4.6"],
        "dcgm3 writes the label Hostname, dcgm4.6 the names of DCGM 4.6.",
    ] = "",
    lay_front: Annotated[
        Path | None,
        "DIRECTORY",
        "Lay the front that holds shares of GPUs there, for containers of the node, and end.",
    ] = None,
    how: Running,
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
    if lay_front is not None:
        _lay(lay_front)
        return
    if root != Path("/"):
        raise BadInput("--root is for --once alone: an agent runs on its own machine")
    from lockstep.agent.settings import Settings, Start
    from lockstep.health.kernel_log import readable
    from lockstep.kube.listener import free_or
    from lockstep.nodes.process.machine_info import node_name

    port = free_or(metrics_port) if any_port else metrics_port
    settings = Settings(
        node_name(node),
        replace(endpoints, metrics_port=port).ports(),
        compat,
        kubelet,
        shares or (kubelet / "lockstep-shares" if kubelet else None),
        kernel_log or readable(),
        reset_hook,
        cdi,
    )
    start = Start(settings, kubeconfig, leashed=how.leashed, verbose=how.verbose)
    # It starts anew without the command line's libraries, which take 8 MiB of every node.
    command = [sys.executable, "-P", "-m", PROCESS, start.text()]
    os.execv(command[0], command)  # noqa: S606 - our own interpreter and arguments


def _lay(directory: Path) -> None:
    from lockstep.devices.sharing import front

    laid = front.lay(directory)
    if laid is None:
        note(
            "this installation has no front: shares of GPUs are not held on this node; build it "
            "with `make -C native front`"
        )
        return
    print_lines([f"the front is in {laid}"])


def _print(root: Path, output: Format) -> None:
    if output not in (Format.JSON, Format.YAML):
        raise BadInput("--output: devices are printed as json or yaml")
    if not (root / "sys").is_dir():
        raise BadInput(f"--root: {root} has no directory sys")
    from lockstep.api.wire import to_builtins
    from lockstep.devices.finding import find

    print_objects([to_builtins(find(root))], output, single=True)
