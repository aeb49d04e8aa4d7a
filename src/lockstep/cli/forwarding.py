"""Ports of a pod on this machine's loopback: one WebSocket for each connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.output import note
from lockstep.kube.errors import ApiError
from lockstep.kube.port_carrying import Port, carry

HOST = "127.0.0.1"


async def forward(session: Session, pod: str, ports: Sequence[tuple[int, int]]) -> None:
    """Serve ports until cancelled; *ports* are pairs of a local port and one of the pod.

    Raises:
        CommandFailed: when a local port is taken.
    """
    async with contextlib.AsyncExitStack() as stack:
        for local, remote in ports:

            async def connected(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = remote
            ) -> None:
                await _carry(session, pod, port, reader, writer)

            try:
                server = await asyncio.start_server(connected, HOST, local)
            except OSError as error:
                raise CommandFailed(
                    f"cannot listen on {HOST}:{local}: {error.strerror}", "0:PORT takes a free one"
                ) from None
            await stack.enter_async_context(server)
            taken = server.sockets[0].getsockname()[1]
            print(f"forwarding {HOST}:{taken} to port {remote} of pod {pod}", flush=True)
        await asyncio.Event().wait()


async def _carry(
    session: Session,
    pod: str,
    port: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    target = Port(session.namespace, pod, port)
    try:
        if said := await carry(session.client.config, target, reader, writer):
            note(said)
    except ApiError as error:
        note(f"port {port}: {error}")
