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
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from lockstep.cli.failure import CommandFailed
from lockstep.cli.foreground import watch_leash
from lockstep.cli.grouped import grouped
from lockstep.cli.options import Leashed
from lockstep.cli.up import lock
from lockstep.cli.up.parts import HOST, Settings
from lockstep.kube.locate import embedded_data

app = typer.Typer(rich_markup_mode=None)

DEFAULT_PORT = 7443
DEFAULT_ROUTER_PORT = 7480
DEFAULT_CONSOLE_PORT = 7490
DEFAULT_GATEWAY_PORT = 7485
DOWN_WITHIN = 60.0
_STABLE_PORTS: Final = (15000, 29000)
"""Below the ports that kernels give to connections, and to services with a node port."""

Data = Annotated[
    Path | None,
    typer.Option(
        help="Directory of everything that lasts; $XDG_DATA_HOME/lockstep by default.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Plane:
    """What runs, and where."""

    data: Data = None
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on loopback; 0 chooses a free one.")
    ] = DEFAULT_PORT
    host: Annotated[
        str,
        typer.Option(
            help="Address at which the API server listens; the other parts stay on loopback."
        ),
    ] = HOST
    router_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Port on loopback at which services are reached; "
            f"{DEFAULT_ROUTER_PORT}, or a free one with --port 0.",
            show_default=False,
        ),
    ] = None
    console_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Port on loopback at which the console is reached; "
            f"{DEFAULT_CONSOLE_PORT}, or a free one with --port 0.",
            show_default=False,
        ),
    ] = None
    gateway_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Port on loopback at which notebooks and kernels are reached; "
            f"{DEFAULT_GATEWAY_PORT}, or a free one with --port 0.",
            show_default=False,
        ),
    ] = None
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Write the kubeconfig here too, besides DATA/kubeconfig.")
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
        bool,
        typer.Option(
            "--process-node/--no-process-node", help="Let this machine run pods as processes."
        ),
    ] = True
    images: Annotated[
        Path | None,
        typer.Option(
            help="Table of what pods run here for images, before the shipped one (YAML).",
            exists=True,
            show_default=False,
        ),
    ] = None

    @property
    def port_of_router(self) -> int:
        """Return the router's port: as stated, else as free as that of the API server."""
        if self.router_port is not None:
            return self.router_port
        return DEFAULT_ROUTER_PORT if self.port else 0

    @property
    def port_of_console(self) -> int:
        """Return the console's port, chosen in the same way."""
        if self.console_port is not None:
            return self.console_port
        return DEFAULT_CONSOLE_PORT if self.port else 0

    @property
    def port_of_gateway(self) -> int:
        """Return the gateway's port, chosen in the same way."""
        if self.gateway_port is not None:
            return self.gateway_port
        return DEFAULT_GATEWAY_PORT if self.port else 0

    @property
    def directory(self) -> Path:
        """Return where everything lies that lasts."""
        return (self.data or embedded_data()).absolute()


@app.command()
@grouped
def up(
    *,
    plane: Plane,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when it is ready and go on in the background.")
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
    if plane.simulate is not None:
        _check_spec(plane.simulate)
    for pool in plane.pool or ():
        _check_pool(pool)
    if detach:
        from lockstep.cli.up.detach import start

        start(
            plane.directory,
            port=plane.port,
            host=plane.host,
            kubeconfig=plane.kubeconfig,
            simulate=plane.simulate,
            pools=tuple(plane.pool or ()),
            process_node=plane.process_node,
            images=plane.images,
            router_port=plane.port_of_router,
            console_port=plane.port_of_console,
            gateway_port=plane.port_of_gateway,
        )
        return
    _warn_root(plane)
    held = lock.take(plane.directory)
    try:
        asyncio.run(_foreground(_settings(plane), held.fd, leashed=leashed))
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


def _settings(plane: Plane) -> Settings:
    port = choose_port(plane.port, host=plane.host)
    from lockstep.devices.finding import anything

    return Settings(
        plane.directory,
        port,
        plane.kubeconfig,
        plane.simulate,
        tuple(plane.pool or ()),
        plane.process_node,
        devices=plane.process_node and anything(),
        router_port=choose_port(plane.port_of_router, "--router-port"),
        console_port=choose_port(plane.port_of_console, "--console-port"),
        gateway_port=choose_port(plane.port_of_gateway, "--gateway-port"),
        host=plane.host,
        images=plane.images,
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
    """Return whether nobody holds the directory; the parts of a killed holder get a while."""
    end = time.monotonic() + lock.LEFTOVERS_END
    while lock.holder(data) is not None:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def choose_port(port: int, option: str = "--port", host: str = HOST) -> int:
    """Return *port*, or a free one for 0.

    Raises:
        CommandFailed: when somebody else listens on it.
    """
    if port == 0:
        # The kernel gives ports of its own range to connections, and a part that is started a
        # moment later, or again, would find its port taken; below that range it stays free.
        drawn = (random.randint(*_STABLE_PORTS) for _ in range(50))  # noqa: S311  no secret
        for candidate in drawn:
            with contextlib.suppress(OSError):
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


def _check_spec(spec: str) -> None:
    from lockstep.nodes.simulated.spec import parse

    try:
        parse(spec)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--simulate") from error


def _check_pool(spec: str) -> None:
    from lockstep.nodes.simulated.pools import parse_pool

    try:
        parse_pool(spec)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--pool") from error


async def _foreground(settings: Settings, held: int, *, leashed: bool) -> None:
    from lockstep.cli.up.supervisor import Supervisor

    supervisor = Supervisor(settings, lock=held, say=_progress(time.monotonic()))
    task = asyncio.create_task(supervisor.run(lambda: _announce(settings)))
    told = False

    def stop() -> None:
        nonlocal told
        if told:
            supervisor.kill()
        told = True
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
    if leashed:
        watch_leash(loop, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise


def _announce(settings: Settings) -> None:
    kubeconfig = (settings.kubeconfig or settings.admin_kubeconfig).absolute()
    print(f"ready https://{settings.host}:{settings.port}")
    print(f"export KUBECONFIG={kubeconfig}", flush=True)


def _progress(began: float) -> Callable[[str], None]:
    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.1f}s] {text}", file=sys.stderr, flush=True)

    return say
