"""A client for any Kubernetes API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from enum import Enum
from typing import Any, TypeVar

from lockstep.api.resource import Resource
from lockstep.api.wire import Wire
from lockstep.kube.codec import WatchEvent, decode, encode, with_identity
from lockstep.kube.config import ClusterConfig
from lockstep.kube.connection import (
    JSON,
    Call,
    Connection,
    Observer,
    TransportFactory,
    default_transport,
)
from lockstep.kube.listing import Listing, read_list
from lockstep.kube.watching import events

__all__ = ["Client", "Listing", "Patch", "WatchEvent"]

T = TypeVar("T", bound=Wire)
PatchBody = dict[str, Any] | list[Any]

PAGE = 500
WATCH_TIMEOUT = 290.0
"""Seconds after which the server ends a watch, so that load spreads over its replicas."""


class Patch(Enum):
    """How a patch is to be understood; the value is its content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Client:
    """Talks to one API server; an asynchronous context manager.

    Every call ends after *deadline* seconds at the latest and raises a subclass of ``ApiError``
    when it fails. 429, 5xx and broken connections are tried again until then, but what is not
    repeatable only where the server has certainly not acted.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        deadline: float = 30.0,
        transport: TransportFactory = default_transport,
    ) -> None:
        self.config = config
        self.deadline = deadline
        self._connection = Connection(config, transport=transport)
        self._fence: Callable[[], None] | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    def observe(self, observer: Observer) -> None:
        """Tell *observer* of every request: method, status, seconds."""
        self._connection.observer = observer

    def fence(self, check: Callable[[], None] | None) -> None:
        """Call *check* before each write; it raises where this process may not write now."""
        self._fence = check

    def unfenced(self) -> Client:
        """Return a client on the same connections whose writes are never held back."""
        other = Client.__new__(Client)
        other.config, other.deadline = self.config, self.deadline
        other._connection, other._fence = self._connection, None
        return other

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        deadline: float | None = None,
        repeatable: bool | None = None,
        accept: str = JSON,
    ) -> bytes:
        """Send any request and return the answer's body.

        Raises:
            ApiError: the subclass that says what went wrong.
        """
        if method != "GET" and self._fence is not None:
            self._fence()
        again = method != "POST" if repeatable is None else repeatable
        call = Call(method, path, params, body, content_type, accept, repeatable=again)
        return await self._connection.send(call, deadline or self.deadline)

    async def get_raw(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return what is at *path*, undecoded."""
        return await self.request("GET", path, params=params)

    async def get(self, res: Resource[T], name: str, namespace: str | None = None) -> T:
        """Return one object; without *namespace*, that of the configuration counts."""
        body = await self.request("GET", res.path(self._space(res, namespace), name))
        return decode(res.type, body)

    async def list(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
        resource_version: str | None = None,
    ) -> Listing[T]:
        """Return all objects, of all namespaces unless one is named, read in pages of *limit*.

        Where the server loses the snapshot between two pages the list is read again as one.
        """
        params = _selectors(label_selector, field_selector)
        if resource_version:
            params["resourceVersion"] = resource_version
        path = res.path(namespace)
        return await read_list(
            lambda page: self.request("GET", path, params=page), res.type, params, limit
        )

    async def create(
        self,
        res: Resource[T],
        obj: T | dict[str, Any],
        namespace: str | None = None,
        *,
        dry_run: bool = False,
    ) -> T:
        """Create *obj* in *namespace*, else in the one it names, else in the configuration's."""
        tree = with_identity(res.api_version, res.kind, obj)
        space = self._space(res, namespace or tree.get("metadata", {}).get("namespace"))
        body = await self.request(
            "POST", res.path(space), params=_writing(dry_run), body=encode(tree)
        )
        return decode(res.type, body)

    async def replace(
        self, res: Resource[T], obj: T | dict[str, Any], *, subresource: str | None = None
    ) -> T:
        """Replace an object, or its *subresource*; its resourceVersion guards against others."""
        tree = with_identity(res.api_version, res.kind, obj)
        meta = tree["metadata"]
        path = res.path(self._space(res, meta.get("namespace")), meta["name"], subresource)
        body = await self.request("PUT", path, params=_writing(), body=encode(tree))
        return decode(res.type, body)

    async def patch(
        self,
        res: Resource[T],
        name: str,
        patch: PatchBody,
        namespace: str | None = None,
        *,
        how: Patch = Patch.MERGE,
        subresource: str | None = None,
        field_manager: str = "lockstep",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Patch an object or its *subresource*; *force* takes fields over in an apply."""
        params = _writing(dry_run, field_manager)
        if how is Patch.APPLY:
            if isinstance(patch, dict):
                patch = with_identity(res.api_version, res.kind, patch)
            params["force"] = "true" if force else "false"
        body = await self.request(
            "PATCH",
            res.path(self._space(res, namespace), name, subresource),
            params=params,
            body=encode(patch),
            content_type=how.value,
            # Adding to a list twice is not the same as adding once.
            repeatable=how is not Patch.JSON,
        )
        return decode(res.type, body)

    async def delete(
        self,
        res: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        grace_seconds: int | None = None,
        propagation: str | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete an object; with *uid* only that one, and not a new one of the same name."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        path = res.path(self._space(res, namespace), name)
        await self.request("DELETE", path, body=encode(options))

    async def bind(
        self,
        namespace: str,
        name: str,
        node: str,
        *,
        uid: str,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Bind a pod to *node* once and for all; *annotations* land on the pod."""
        metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid}
        if annotations:
            metadata["annotations"] = annotations
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        await self.request("POST", path, body=encode(binding))

    async def evict(self, namespace: str, name: str, *, grace_seconds: int | None = None) -> None:
        """Ask for a pod's end within its disruption budget.

        Raises:
            TooManyRequests: when the budget does not allow it now.
        """
        eviction: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        if grace_seconds is not None:
            eviction["deleteOptions"] = {"gracePeriodSeconds": grace_seconds}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        await self.request("POST", path, body=encode(eviction))

    async def logs(
        self,
        namespace: str,
        name: str,
        *,
        container: str | None = None,
        follow: bool = False,
        tail: int | None = None,
        since_time: str = "",
        since_seconds: int | None = None,
        previous: bool = False,
        timestamps: bool = False,
        node: str = "",
        uid: str = "",
    ) -> AsyncGenerator[bytes, None]:
        """Yield a container's log in pieces; with *follow* for as long as it runs.

        With *node* and *uid* it is the log of a pod that is gone, kept by the node.
        """
        flags = {"follow": follow, "previous": previous, "timestamps": timestamps}
        params = {flag: "true" for flag, on in flags.items() if on}
        if container:
            params["container"] = container
        if tail is not None:
            params["tailLines"] = str(tail)
        if since_seconds is not None:
            params["sinceSeconds"] = str(since_seconds)
        if since_time:
            params["sinceTime"] = since_time
        if uid:
            params |= {"node": node, "uid": uid}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
        call = Call("GET", path, params, accept="text/plain, */*")
        stream = await self._connection.open(call, self.deadline)
        try:
            async for chunk in stream.chunks():
                yield chunk
        finally:
            await stream.close()

    async def watch(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout: float = WATCH_TIMEOUT,
        initial_events: bool = False,
        silence: float | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Yield what changes after *resource_version* until the server ends the watch.

        With *initial_events* the present objects come first, then a bookmark that is ``synced``.
        A stream on which nothing at all comes for *silence* seconds is given up.

        Raises:
            Gone: when the version is no longer kept.
            Unreachable: when the stream breaks or is silent.
            ValueError: without a version; it would bypass the server's cache.
        """
        if not resource_version:
            raise ValueError("a watch needs a resourceVersion; list first, or start from '0'")
        params = _selectors(label_selector, field_selector)
        params |= {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(timeout))),
        }
        if initial_events:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        call = Call("GET", res.path(namespace), params)
        found = events(self._connection, call, res.type, deadline=self.deadline, silence=silence)
        async with aclosing(found):
            async for event in found:
                yield event

    def _space(self, res: Resource[T], namespace: str | None) -> str | None:
        return namespace or (self.config.namespace if res.namespaced else None)


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    params = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in params.items() if value}


def _writing(dry_run: bool = False, field_manager: str = "lockstep") -> dict[str, str]:
    params = {"fieldManager": field_manager}
    if dry_run:
        params["dryRun"] = "All"
    return params
