"""Logs of a container, from the agent of the node that the pod runs on.

Nodes keep the logs of pods that are gone for a while. ``pods/-/log?job=JOB`` lists the pods of a
job whose logs there are, and ``pods/NAME/log?node=NODE&uid=UID&container=NAME`` is the log of one
of them. The right is that to ``pods/log`` of the namespace; no pod can have the name ``-``.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from lockstep.api import names, timestamp
from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.auth.pki import Pki
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.store import Key, Store
from lockstep.http import Response, Stream
from lockstep.http.message import Write

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
_ANY_POD = "-"
_LIST_SECONDS = 5.0


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

        if call.route.name == _ANY_POD:
            return await self._list(call)
        url = self._url(call)
        if url is None:
            # The pod has no node yet, and so no log.
            return Response(204, content_type="")
        try:
            upstream = await self._connected().get(url)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise unreachable(f"Get {url}", error) from None
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
        asked = call.request.query
        query = {k: v for k, v in asked.items() if k in _PASSED}
        if "node" in asked and "uid" in asked:
            parts = "keptLogs", namespace, name, asked.get("container", "")
            query |= {"uid": asked["uid"], **self._since(namespace)}
            return f"{self._agent(asked['node'], parts)}?{urlencode(query)}"
        record = self._store.get(Key("pods", namespace, name))
        if record is None:
            raise status.not_found("", "pods", name)
        pod = record.object()
        container = container_of(pod, asked.get("container", ""))
        node = pod["spec"].get("nodeName")
        if not node:
            return None
        parts = "containerLogs", namespace, name, container
        return f"{self._agent(node, parts)}?{urlencode(query)}"

    def _agent(self, node: str, parts: tuple[str, ...]) -> str:
        host, port = agent_of(self._store, node)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return f"https://{address}/" + "/".join(quote(part, safe="") for part in parts)

    async def _list(self, call: Call) -> Response:
        """Answer with the pods of a job whose logs the nodes have, those that are gone too."""
        job = call.request.query.get("job", "")
        if not job:
            raise status.bad_request("the job whose logs are wanted is not named: add ?job=NAME")
        nodes = [
            record.key.name
            for record in self._store.objects("nodes")
            if record.labels.get(names.NODE_KIND_LABEL) != "simulated"
        ]
        space = call.route.namespace
        parts, since = ("keptLogs", space, job), urlencode(self._since(space))
        found = await asyncio.gather(*(self._of_node(node, parts, since) for node in nodes))
        return Response(body=msgspec.json.encode([entry for one in found for entry in one]))

    def _since(self, namespace: str) -> dict[str, str]:
        """Return when the namespace was made: what pods said before was said in another one."""
        found = self._store.newest(Key("namespaces", "", namespace))
        made = found.object()["metadata"].get("creationTimestamp") if found else None
        return {"after": str(timestamp.read(made) or 0.0)}

    async def _of_node(self, node: str, parts: tuple[str, ...], query: str) -> list[Json]:
        """Return what a node has; nothing where it has no agent, or one that keeps no logs."""
        import aiohttp

        try:
            url = f"{self._agent(node, parts)}?{query}"
            async with asyncio.timeout(_LIST_SECONDS), self._connected().get(url) as answer:
                entries = await answer.json() if answer.status == 200 else []
        except (aiohttp.ClientError, OSError, ValueError, status.StatusError):
            return []
        return [{**entry, "node": node} for entry in entries]

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


def unreachable(doing: str, error: Exception) -> status.StatusError:
    """Return the answer where the agent of a node cannot be talked to."""
    cause = getattr(error, "certificate_error", error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return status.internal(
            f"{doing}: the node's certificate is not of this cluster's authority "
            f"({cause.verify_message}); start the process node with --certificate and --key, as "
            "`lockstep up` does"
        )
    return status.internal(f"{doing}: {error}")


def client_context(pki: Pki) -> ssl.SSLContext:
    """Return the TLS context with which the server calls the agents of nodes.

    An agent has to show a certificate of the cluster's own authority, see `Pki.node_agent`: what is
    sent there may be secret, such as the input of commands.
    """
    pair = pki.kubelet_client()
    context = ssl.create_default_context(cafile=str(pki.ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
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
