"""The two sockets of a driver: one for kubelet's plugin watcher, one for kubelet's requests.

Kubelet looks for drivers in ``plugins_registry``, asks each what it is, and then calls it; so a
driver is found also after kubelet, or the driver itself, was restarted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import grpc

from lockstep.devices.kubelet.wire import pluginregistration_pb2 as registration

log = logging.getLogger(__name__)

REGISTRATION: Final = "pluginregistration.Registration"
LOOK_EVERY: Final = 1.0
Methods = dict[str, grpc.RpcMethodHandler]


def unary(function: Any, request: Any) -> grpc.RpcMethodHandler:
    """Return the handler of a call with one message each way."""
    return grpc.unary_unary_rpc_method_handler(
        function, request.FromString, lambda answer: answer.SerializeToString()
    )


class DriverSockets:
    """Serves the driver *name* of the sort *sort* (``DRAPlugin``, ``CSIPlugin``) to kubelet."""

    def __init__(
        self,
        kubelet: Path,
        name: str,
        *,
        sort: str,
        versions: Sequence[str],
        services: Mapping[str, Methods],
        socket: str,
    ) -> None:
        self.name, self._sort, self._versions = name, sort, list(versions)
        self._services = services
        self.socket = kubelet / "plugins" / name / socket
        self._registry = kubelet / "plugins_registry" / f"{name}-reg.sock"

    async def run(self) -> None:
        """Serve until cancelled."""
        servers: list[grpc.aio.Server] = []
        try:
            while True:
                # What a killed driver left are files without anything behind them.
                if not (servers and self.socket.exists() and self._registry.exists()):
                    await _stop(servers)
                    own = {REGISTRATION: self._registration()}
                    servers = [
                        await serve_at(self.socket, self._services),
                        await serve_at(self._registry, own),
                    ]
                await asyncio.sleep(LOOK_EVERY)
        finally:
            await _stop(servers)

    def _registration(self) -> Methods:
        return {
            "GetInfo": unary(self._info, registration.InfoRequest),
            "NotifyRegistrationStatus": unary(self._notified, registration.RegistrationStatus),
        }

    async def _info(self, _: registration.InfoRequest, __: object) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=self._sort,
            name=self.name,
            endpoint=str(self.socket),
            supported_versions=self._versions,
        )

    async def _notified(
        self, status: registration.RegistrationStatus, _: object
    ) -> registration.RegistrationStatusResponse:
        if status.plugin_registered:
            log.info("kubelet knows the driver %s", self.name)
        else:
            log.warning("kubelet does not take the driver %s: %s", self.name, status.error)
        return registration.RegistrationStatusResponse()


async def serve_at(socket: Path, services: Mapping[str, Methods]) -> grpc.aio.Server:
    """Serve services at a socket, in place of what is left there."""
    _make_room(socket)
    server = grpc.aio.server()
    handlers = (
        grpc.method_handlers_generic_handler(service, methods)
        for service, methods in services.items()
    )
    server.add_generic_rpc_handlers(tuple(handlers))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server


def _make_room(socket: Path) -> None:
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)


async def _stop(servers: list[grpc.aio.Server]) -> None:
    for server in servers:
        await server.stop(0)
