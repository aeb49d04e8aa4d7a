"""Running probes and hooks: commands beside a container, HTTP requests and TCP connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from lockstep.nodes.process.health import Kind
from lockstep.nodes.process.spec import Container, Handler, HttpAction, Probe

Beside = Callable[[list[str], float], Awaitable[tuple[int, str]]]
Result = tuple[bool, str]


def port_number(port: int | str, container: Container) -> int:
    """Return the number of *port*, which may be the name of one of the container's ports.

    Raises:
        ValueError: when the container has no port of that name.
    """
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for one in container.ports:
        if one.name == port:
            return one.container_port
    raise ValueError(f"container {container.name} has no port {port!r}")


async def ask(
    action: Probe | Handler, container: Container, address: str, beside: Beside, timeout: float
) -> Result:
    """Perform one probe or hook; return whether it succeeded, and if not, why."""
    try:
        async with asyncio.timeout(timeout):
            if action.exec_ is not None:
                code, output = await beside(action.exec_.command, timeout)
                return code == 0, output.strip()
            if action.http_get is not None:
                return await _http(action.http_get, container, address)
            if action.tcp_socket is not None:
                port = port_number(action.tcp_socket.port, container)
                _, writer = await asyncio.open_connection(action.tcp_socket.host or address, port)
                writer.close()
                return True, ""
    except TimeoutError:
        return False, f"timed out after {timeout:g}s"
    except (OSError, ValueError, aiohttp.ClientError) as error:
        return False, str(error)
    return True, ""


async def _http(action: HttpAction, container: Container, address: str) -> Result:
    port = port_number(action.port, container)
    scheme = action.scheme.lower()
    path = action.path if action.path.startswith("/") else "/" + action.path
    url = f"{scheme}://{action.host or address}:{port}{path}"
    headers = [(one.name, one.value) for one in action.http_headers]
    headers = [("User-Agent", "kube-probe/lockstep"), *headers]
    connector = aiohttp.TCPConnector(ssl=False)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(url, headers=headers, allow_redirects=False) as response,
    ):
        good = 200 <= response.status < 400
        return good, "" if good else f"HTTP probe failed with statuscode: {response.status}"


async def keep_asking(
    kind: Kind,
    probe: Probe,
    once: Callable[[Probe], Awaitable[Result]],
    due: Callable[[], bool],
    told: Callable[[Kind, Probe, bool, str], Any],
) -> None:
    """Ask again and again, as often as *probe* says, while *due*; runs until cancelled."""
    await asyncio.sleep(probe.initial_delay_seconds)
    while True:
        if due():
            good, why = await once(probe)
            told(kind, probe, good, why)
        elif kind is Kind.STARTUP:
            return
        await asyncio.sleep(max(probe.period_seconds, 1) if due() else 0.1)
