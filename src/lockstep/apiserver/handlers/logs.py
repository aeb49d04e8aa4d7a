"""Logs of a container, from the agent of the node that the pod runs on."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from lockstep.apiserver import status
from lockstep.apiserver.auth.pki import Pki
from lockstep.apiserver.handlers.call import Call, Json
from lockstep.apiserver.http import Response, Stream
from lockstep.apiserver.http.message import Write
from lockstep.apiserver.store import Key, Store

if TYPE_CHECKING:
    import aiohttp

_PASSED = (
    "follow",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "stream",
    "tailLines",
    "timestamps",
)
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_CONNECT_SECONDS = 5.0
_TEXT = "text/plain"


class Logs:
    """Fetches logs with the server's own client certificate; connections are kept."""

    def __init__(self, store: Store, pki: Pki) -> None:
        self._store = store
        self._pki = pki
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, call: Call) -> Response | Stream:
        """Answer with the log of a container.

        Raises:
            StatusError: when there is no such pod, container or node, or no answer from there.
        """
        import aiohttp

        url = self._url(call)
        if url is None:
            # The pod has no node yet, and so no log.
            return Response(204, content_type="")
        try:
            upstream = await self._connected().get(url)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise status.internal(f"Get {url}: {error}") from None
        if upstream.status != 200:
            async with upstream:
                text = await upstream.text()
            raise status.StatusError(upstream.status, "BadRequest", text.strip())

        async def produce(write: Write) -> None:
            async with upstream:
                async for chunk in upstream.content.iter_any():
                    await write(chunk)

        return Stream(produce, content_type=_TEXT)

    def _url(self, call: Call) -> str | None:
        namespace, name = call.route.namespace, call.route.name
        record = self._store.get(Key("pods", namespace, name))
        if record is None:
            raise status.not_found("", "pods", name)
        pod = record.object()
        container = container_of(pod, call.request.query.get("container", ""))
        node = pod["spec"].get("nodeName")
        if not node:
            return None
        query = {k: v for k, v in call.request.query.items() if k in _PASSED}
        path = "/".join(map(quote, ("containerLogs", namespace, name, container)))
        host, port = agent_of(self._store, node)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return f"https://{address}/{path}?{urlencode(query)}"

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
            context = client_context(self._pki)
            connector = aiohttp.TCPConnector(ssl=context, limit=0)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def agent_of(store: Store, node: str) -> tuple[str, int]:
    """Return host and port of the agent of a node.

    Raises:
        StatusError: when there is no such node, or no agent on it.
    """
    record = store.get(Key("nodes", "", node))
    if record is None:
        raise status.not_found("", "nodes", node)
    found = record.object().get("status") or {}
    endpoints = found.get("daemonEndpoints") or {}
    port = (endpoints.get("kubeletEndpoint") or {}).get("Port")
    addresses = [
        a["address"] for a in found.get("addresses") or () if a.get("type") == "InternalIP"
    ]
    if not port or not addresses:
        raise status.bad_request(f"node {node} has no agent that could be asked")
    return addresses[0], int(port)


def client_context(pki: Pki) -> ssl.SSLContext:
    """Return the TLS context with which the server calls the agents of nodes."""
    pair = pki.kubelet_client()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Nodes serve with certificates of their own making, as kubelets do unless told otherwise;
    # nothing secret is sent there, and what the client's key signs is of no use elsewhere.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def container_of(pod: Json, asked: str) -> str:
    """Return the container whose log is meant.

    Raises:
        StatusError: when there is none of that name, or one of several has to be chosen.
    """
    name, spec = pod["metadata"]["name"], pod["spec"]
    main = [c["name"] for c in spec.get("containers") or ()]
    others = [
        c["name"]
        for kind in ("initContainers", "ephemeralContainers")
        for c in spec.get(kind) or ()
    ]
    if asked:
        if asked not in [*main, *others]:
            raise status.bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    default = (pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER)
    if default in main:
        return str(default)
    if len(main) == 1:
        return str(main[0])
    choice = f"choose one of: [{' '.join(main)}]"
    if others:
        choice += f" or one of the init containers: [{' '.join(others)}]"
    raise status.bad_request(f"a container name must be specified for pod {name}, {choice}")
