"""WebSockets to an API server: commands in containers, and ports of pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

from lockstep.kube.config import ClusterConfig
from lockstep.kube.credentials import Credentials
from lockstep.kube.errors import ApiError, Unreachable
from lockstep.kube.tls import client_context

BEAT = 30.0
"""Seconds between two signs of life on a socket."""


@asynccontextmanager
async def websocket(
    config: ClusterConfig, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Open a WebSocket at *path* of the API server.

    Raises:
        ApiError: when the server refuses it.
        Unreachable: when there is no connection.
    """
    credential = await Credentials(config).current()
    context = None
    if config.server.startswith("https://"):
        context = client_context(
            ca=config.ca,
            certificate=credential.certificate,
            key=credential.key,
            insecure=config.insecure,
        )
    headers = {"Authorization": credential.authorization} if credential.authorization else {}
    if config.acts_as:
        headers["Impersonate-User"] = config.acts_as
    async with aiohttp.ClientSession() as session:
        try:
            socket = await session.ws_connect(
                config.server.rstrip("/") + path,
                params=list(query),
                protocols=list(protocols),
                headers=headers,
                ssl=context if context is not None else False,
                server_hostname=config.tls_server_name,
                heartbeat=BEAT,
                max_msg_size=0,
            )
        except aiohttp.WSServerHandshakeError as error:
            raise ApiError(
                error.status,
                "Refused",
                f"{path}: the server refuses the WebSocket ({error.status})",
            ) from None
        except aiohttp.ClientError as error:
            raise Unreachable("Connection", f"{config.server}: {error}", acted=False) from None
        try:
            yield socket
        finally:
            await socket.close()
