"""Where a process answers: probes to everybody, metrics to those who may read them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import sys
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from lockstep.http.message import Request, Response
from lockstep.http.server import HttpServer
from lockstep.kube.client import Client
from lockstep.kube.errors import ConfigError
from lockstep.kube.listener import EVERY_ADDRESS, LOOPBACK, Handler, listener
from lockstep.kube.peers import is_trusted
from lockstep.kube.scraping import PATH, Gate
from lockstep.kube.tls import load_pair
from lockstep.runtime.health import Health

log = logging.getLogger(__name__)

_END: Final = b"-----END CERTIFICATE-----\n"
RENEWAL: Final = 60.0
"""Seconds between two looks at the files of a certificate that another program renews."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Which ports a process listens on; 0 chooses a free one, None is none at all."""

    local: int | None = None
    """Health with reasons, and metrics, on loopback: for the process's own user and root; other
    users need a token for metrics."""
    probes: int | None = None
    """Yes or no for a kubelet, on every address."""
    metrics: int | None = None
    """Metrics over TLS for those who may read them, on every address."""
    certificate: Path | None = None
    """Directory with ``tls.crt`` and ``tls.key`` for them; an own certificate by default."""


class Endpoints:
    """The listeners of one process; ``ports`` says where they are once they have started."""

    def __init__(self, ports: Ports, health: Health, client: Client) -> None:
        self.ports = ports
        self._health = health
        self._client = client
        self._listeners: list[HttpServer] = []
        self._renewal: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: when a port is taken.
            ConfigError: when the certificate cannot be used.
        """
        wanted = self.ports
        local, probes, metrics = wanted.local, wanted.probes, wanted.metrics
        if local is not None:
            gate = Gate(self._client, self._health.expose)
            handler = partial(_local, self._health, gate)
            local = await self._listen(handler, LOOPBACK, local)
            log.info("health and metrics on http://%s:%d", LOOPBACK, local)
        if probes is not None:
            probes = await self._listen(self._health.probe, EVERY_ADDRESS, probes)
        if metrics is not None:
            gate = Gate(self._client, self._health.expose)
            tls = await self._context(wanted.certificate)
            metrics = await self._listen(gate.answer, EVERY_ADDRESS, metrics, tls)
        self.ports = Ports(local, probes, metrics, wanted.certificate)

    async def close(self) -> None:
        """Stop listening."""
        if self._renewal is not None:
            self._renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewal
        for server in self._listeners:
            await server.close()

    async def _listen(
        self, handler: Handler, host: str | None, port: int, tls: ssl.SSLContext | None = None
    ) -> int:
        server = listener(handler, tls)
        bound = await server.bind(host, port)
        self._listeners.append(server)
        return bound

    async def _context(self, directory: Path | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if directory is None:
            load_pair(context, *await _self_signed())
        else:
            pair = _read(directory)
            load_pair(context, *pair)
            self._renewal = asyncio.create_task(_renew(context, directory, pair))
        return context


async def _local(health: Health, gate: Gate, request: Request) -> Response:
    """Answer on loopback: metrics for the process's own user, and for others with a token."""
    if request.path == PATH and not is_trusted(request.peer):
        return await gate.answer(request)
    return await health.tell(request)


async def _self_signed() -> tuple[bytes, bytes]:
    """Have a child make a certificate for this host, and its key.

    Raises:
        ConfigError: when it cannot.
    """
    command = (sys.executable, "-P", "-m", "lockstep.keys", socket.gethostname())
    child = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    said, error = await child.communicate()
    if child.returncode != 0:
        words = error.decode(errors="replace").strip().rpartition("\n")[2]
        raise ConfigError(f"the certificate for metrics cannot be made: {words}")
    certificate, mark, key = said.partition(_END)
    return certificate + mark, key


def _read(directory: Path) -> tuple[bytes, bytes]:
    try:
        return (directory / "tls.crt").read_bytes(), (directory / "tls.key").read_bytes()
    except OSError as error:
        raise ConfigError(f"the certificate for metrics cannot be read: {error}") from error


async def _renew(context: ssl.SSLContext, directory: Path, used: tuple[bytes, bytes]) -> None:
    """Serve with what is in *directory* now; the context applies it to new connections."""
    while True:
        await asyncio.sleep(RENEWAL)
        try:
            pair = _read(directory)
            if pair != used:
                load_pair(context, *pair)
                used = pair
        except (ConfigError, ssl.SSLError) as error:
            # Between certificate and key the files do not fit; the next look finds both.
            log.warning("the certificate for metrics is kept: %s", error)
