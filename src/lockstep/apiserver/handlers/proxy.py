"""HTTP to pods and services through the API server: ``pods/NAME:PORT/proxy/PATH``.

Pods of process nodes have loopback addresses of their own, beyond 127.0.0.0/16, and only these are
reached: a user who may write the status of a pod must not reach the machine's own services with it.
"""

from __future__ import annotations

import ipaddress
import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from lockstep.api.selectors import from_labels
from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.store import Key, Store
from lockstep.http import Request, Response, Stream
from lockstep.http.message import Write

if TYPE_CHECKING:
    import aiohttp

_PODS: Final = ipaddress.ip_network("127.0.0.0/8")
_MACHINE: Final = ipaddress.ip_network("127.0.0.0/16")
_CONNECT_SECONDS: Final = 5.0
_PLAIN_PORT: Final = 80
# What concerns one connection, and what the API server alone should see.
_KEPT_BACK: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "content-length", "host", "authorization"),
    }
)


class Target(NamedTuple):
    """What a name in the path says: ``SCHEME:NAME:PORT``, of which the name alone is needed."""

    scheme: str
    name: str
    port: str


def parse_target(text: str) -> Target:
    """Return what *text* names.

    Raises:
        StatusError: when it has too many parts, or a scheme that is not served.
    """
    parts = text.split(":")
    if len(parts) == 1:
        return Target("http", parts[0], "")
    if len(parts) == 2:
        return Target("http", parts[0], parts[1])
    if len(parts) == 3 and parts[0] in ("", "http") and parts[1]:
        return Target("http", parts[1], parts[2])
    raise status.bad_request(f'invalid request "{text}": it is NAME, NAME:PORT or http:NAME:PORT')


class Proxy:
    """Passes requests on to pods."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, call: Call) -> Response | Stream:
        """Answer as the pod does.

        Raises:
            StatusError: when there is no such pod or service, or it cannot be reached.
        """
        import aiohttp

        request = call.request
        if request.headers.get("upgrade"):
            raise status.bad_request("a proxied connection cannot be upgraded; forward the port")
        address, port = self._place(call)
        prefix, path = _split(request.path)
        query = f"?{request.raw_query}" if request.raw_query else ""
        try:
            upstream = await self._connected().request(
                request.method,
                _url(address, port, path, query),
                headers=_passed(request, prefix + path),
                data=request.body or None,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise status.StatusError(
                503, "ServiceUnavailable", f"error trying to reach service: {error}"
            ) from None
        headers = [
            (name, _moved(value, prefix) if name.lower() == "location" else value)
            for name, value in upstream.headers.items()
            if name.lower() not in (*_KEPT_BACK, "content-type")
        ]
        kind = upstream.headers.get("content-type", "")
        if request.method == "HEAD" or upstream.status in (204, 304):
            upstream.release()
            return Response(upstream.status, b"", kind, headers)

        async def produce(write: Write) -> None:
            async with upstream:
                async for chunk in upstream.content.iter_any():
                    await write(chunk)

        return Stream(produce, upstream.status, kind, headers)

    def _place(self, call: Call) -> tuple[str, int]:
        target = parse_target(call.route.name)
        namespace, plural = call.route.namespace, call.route.plural
        record = self._store.get(Key(plural, namespace, target.name))
        if record is None:
            raise status.not_found("", plural, target.name)
        if plural == "services":
            return self._of_service(namespace, record.object(), target)
        pod = record.object()
        address = _address(pod)
        if not address:
            raise status.bad_request(f"pod {target.name} has no address that can be reached")
        return address, _port_of_pod(pod, target.port)

    def _of_service(self, namespace: str, service: Json, target: Target) -> tuple[str, int]:
        spec = service.get("spec") or {}
        wanted = _port_of_service(spec, target)
        selector = spec.get("selector") or {}
        matches = from_labels(selector).matches
        ready = [
            pod
            for record in self._store.objects("pods", namespace)
            if selector and matches(record.labels) and _is_ready(pod := record.object())
        ]
        if not ready:
            raise status.StatusError(
                503,
                "ServiceUnavailable",
                f'no endpoints available for service "{target.name}"',
            )
        pod = random.choice(ready)  # noqa: S311  any will do
        return _address(pod), _target_port(pod, wanted)

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(
                timeout=timeout,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _split(path: str) -> tuple[str, str]:
    """Return the part of a path that ends in ``proxy``, and what follows."""
    # /api/v1/namespaces/NAMESPACE/pods/NAME/proxy/...
    parts = path.lstrip("/").split("/", 7)
    return "/" + "/".join(parts[:7]), "/" + "".join(parts[7:])


def _url(address: str, port: int, path: str, query: str) -> Any:
    from yarl import URL

    return URL(f"http://{address}:{port}{quote(path, safe=_SAFE)}{query}", encoded=True)


_SAFE: Final = "/:@!$&'()*+,;=~-._"


def _passed(request: Request, uri: str) -> dict[str, str]:
    headers = {k: v for k, v in request.headers.items() if k not in _KEPT_BACK}
    return headers | {
        "x-forwarded-for": request.peer.address,
        "x-forwarded-host": request.headers.get("host", ""),
        "x-forwarded-proto": "https",
        "x-forwarded-uri": quote(uri, safe=_SAFE),
    }


def _moved(location: str, prefix: str) -> str:
    return f"{prefix}{location}" if location.startswith("/") else location


def _address(pod: Json) -> str:
    """Return the address of a pod of a process node, or nothing where it has none."""
    text = (pod.get("status") or {}).get("podIP") or ""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    return text if address in _PODS and address not in _MACHINE else ""


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and bool(_address(pod))


def _ports(pod: Json) -> list[Json]:
    containers = (pod.get("spec") or {}).get("containers") or ()
    return [port for container in containers for port in container.get("ports") or ()]


def _port_of_pod(pod: Json, asked: str) -> int:
    if not asked:
        ports = _ports(pod)
        return int(ports[0]["containerPort"]) if ports else _PLAIN_PORT
    return _target_port(pod, int(asked) if asked.isdecimal() else asked)


def _target_port(pod: Json, port: int | str) -> int:
    if isinstance(port, str):
        named = [p["containerPort"] for p in _ports(pod) if p.get("name") == port]
        if not named:
            raise status.bad_request(f"pod {pod['metadata']['name']} has no port named {port}")
        port = int(named[0])
    if not 0 < port < 1 << 16:
        raise status.bad_request(f"{port} is no port: give one from 1 to 65535")
    return port


def _port_of_service(spec: Json, target: Target) -> int | str:
    ports = spec.get("ports") or []
    for port in ports:
        if target.port in (str(port.get("port")), port.get("name")) or (
            not target.port and len(ports) == 1
        ):
            found: int | str = port.get("targetPort") or port["port"]
            return found
    shown = ", ".join(str(port.get("name") or port.get("port")) for port in ports)
    raise status.StatusError(
        503,
        "ServiceUnavailable",
        f'no service port "{target.port}" found for service "{target.name}": it has {shown}',
    )
