"""Where a process answers: probes to everybody, metrics to those who may read them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lockstep.kube.client import Client
from lockstep.kube.errors import ConfigError
from lockstep.kube.health import Health
from lockstep.kube.listener import EVERY_ADDRESS, LOOPBACK, Listener
from lockstep.kube.scraping import Gate
from lockstep.kube.tls import load_pair

log = logging.getLogger(__name__)

RENEWAL: Final = 60.0
"""Seconds between two looks at the files of a certificate that somebody else renews."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Which ports a process listens on; 0 chooses a free one, None is none at all."""

    local: int | None = None
    """Health with reasons, and metrics, on loopback."""
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
        self._listeners: list[Listener] = []
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
            local = await self._listen(Listener(self._health.tell, host=LOOPBACK, port=local))
            log.info("health and metrics on http://%s:%d", LOOPBACK, local)
        if probes is not None:
            handler = self._health.probe
            probes = await self._listen(Listener(handler, host=EVERY_ADDRESS, port=probes))
        if metrics is not None:
            gate = Gate(self._client, self._health.expose)
            tls = self._context(wanted.certificate)
            listener = Listener(gate.answer, host=EVERY_ADDRESS, port=metrics, tls=tls)
            metrics = await self._listen(listener)
        self.ports = Ports(local, probes, metrics, wanted.certificate)

    async def close(self) -> None:
        """Stop listening."""
        if self._renewal is not None:
            self._renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewal
        for listener in self._listeners:
            await listener.close()

    async def _listen(self, listener: Listener) -> int:
        port = await listener.start()
        self._listeners.append(listener)
        return port

    def _context(self, directory: Path | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if directory is None:
            from lockstep.keys.authority import self_signed

            load_pair(context, *self_signed(socket.gethostname()))
        else:
            pair = _read(directory)
            load_pair(context, *pair)
            self._renewal = asyncio.create_task(_renew(context, directory, pair))
        return context


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
