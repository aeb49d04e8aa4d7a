"""``lockstep up`` and ``lockstep down``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from lockstep.cli.app import App
from lockstep.cli.failure import CommandFailed, usage
from lockstep.cli.foreground import until_told
from lockstep.cli.part_options import Leashed
from lockstep.cli.up import lock
from lockstep.cli.up.parts import HOST, Data, Plane
from lockstep.kube.locate import embedded_data

app = App()

DOWN_WITHIN = 60.0
_STABLE_PORTS: Final = (15000, 29000)
"""Below the ports that kernels give to connections, and to services with a node port."""
_given = set[int]()
"""The free ports that this process has chosen."""


@app.command()
def up(
    *,
    plane: Plane,
    detach: Annotated[
        bool, "--detach", "Return when it is ready and go on in the background."
    ] = False,
    leashed: Leashed = False,
) -> None:
    """Run the embedded control plane on this machine.

    It stays in the foreground until SIGINT or SIGTERM. With the same --data it goes on where it
    was.

    \b
    Examples:
      lockstep up
      lockstep up --data ./cluster --port 0 --simulate 64x8,nodes-per-leaf=8,leaves-per-spine=4
      lockstep up --pool gpu=0..8x8,nodes-per-leaf=4,price=98,idle=1m
      lockstep up --detach && lockstep list; lockstep down
    """
    _check(plane)
    if detach:
        from lockstep.cli.up.detach import start

        start(plane.directory, plane.arguments)
        return
    _warn_root(plane)
    held = lock.take(plane.directory)
    try:
        asyncio.run(_foreground(_chosen(plane), held.fd, leashed=leashed))
    finally:
        held.release()


def _warn_root(plane: Plane) -> None:
    if plane.process_node and os.geteuid() == 0:
        typer.echo(
            "warning: pods run as root on this machine, for `lockstep up` does; a user who may "
            "create pods can do everything here (docs/security.md). Run it as a user of its own, "
            "or with --no-process-node.",
            err=True,
        )


def _chosen(plane: Plane) -> Plane:
    """Return the plane with the ports that it will listen on, and whether there are devices."""
    from lockstep.devices.finding import anything

    ports = {option: choose_port(port, option) for option, port in plane.ports.items()}
    return replace(
        plane,
        port=choose_port(plane.port, host=plane.host),
        devices=plane.process_node and anything(),
        router_port=ports["--router-port"],
        console_port=ports["--console-port"],
        gateway_port=ports["--gateway-port"],
    )


@app.command()
def down(*, data: Data = None) -> None:
    """Stop the embedded control plane and the pods on this machine.

    Its data stays; `lockstep up` goes on from there.

    Example: lockstep down --data ./cluster
    """
    directory = (data or embedded_data()).absolute()
    pid = lock.holder(directory)
    if pid is None:
        typer.echo(f"lockstep up does not run on {directory}", err=True)
        return
    typer.echo(f"stopping process {pid}", err=True)
    if not _end(pid) or not _released(directory):
        raise CommandFailed(
            f"process {pid} or its parts still run after {DOWN_WITHIN:.0f} s",
            f"its logs are in {directory / 'log'}; `kill -9 {pid}` ends it and its parts",
        )
    typer.echo("stopped", err=True)


def _end(pid: int) -> bool:
    """Ask a process to end; return whether it did in time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        ended, _, _ = select.select([handle], [], [], DOWN_WITHIN)
        return bool(ended)
    finally:
        os.close(handle)


def _released(data: Path) -> bool:
    """Return whether no process holds the directory; the parts of a killed holder get a while."""
    end = time.monotonic() + lock.LEFTOVERS_END
    while lock.holder(data) is not None:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def choose_port(port: int, option: str = "--port", host: str = HOST) -> int:
    """Return *port*, or a free one for 0.

    Raises:
        CommandFailed: when another process listens on it.
    """
    if port == 0:
        # The kernel gives ports of its own range to connections, and a part that is started a
        # moment later, or again, would find its port taken; below that range it stays free.
        drawn = (random.randint(*_STABLE_PORTS) for _ in range(50))  # noqa: S311  no secret
        for candidate in drawn:
            with contextlib.suppress(OSError):
                if candidate not in _given:  # to a part that does not listen yet
                    _given.add(candidate)
                    return _bound(candidate, host)
    try:
        return _bound(port, host)
    except OSError as error:
        raise CommandFailed(
            f"cannot listen on {host}:{port}: {error.strerror}",
            f"choose another port with {option} N, or any free one with {option} 0",
        ) from error


def _bound(port: int, host: str) -> int:
    """Return the port that listening on *port* would take.

    Raises:
        OSError: when it is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])


def _check(plane: Plane) -> None:
    """Require that nodes and pools to simulate are described as they must be."""
    from lockstep.nodes.simulated.pools import parse_pool
    from lockstep.nodes.simulated.spec import parse

    if plane.simulate is not None:
        with usage("--simulate"):
            parse(plane.simulate)
    for pool in plane.pool or ():
        with usage("--pool"):
            parse_pool(pool)


async def _foreground(settings: Plane, held: int, *, leashed: bool) -> None:
    from lockstep.cli.up.supervisor import Supervisor

    supervisor = Supervisor(settings, lock=held, say=_progress(time.monotonic()))
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    work = supervisor.run(lambda: _announce(settings))
    await until_told(work, signals, leashed=leashed, again=supervisor.kill)


def _announce(settings: Plane) -> None:
    kubeconfig = (settings.kubeconfig or settings.admin_kubeconfig).absolute()
    print(f"ready https://{settings.host}:{settings.port}")
    print(f"export KUBECONFIG={kubeconfig}", flush=True)


def _progress(began: float) -> Callable[[str], None]:
    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.1f}s] {text}", file=sys.stderr, flush=True)

    return say
