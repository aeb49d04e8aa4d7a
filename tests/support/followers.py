"""Caches that follow config maps with other people's clients, as their users write them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import httpx2
import kr8s
import kr8s.asyncio
import kubernetes
import kubernetes.informer
import lightkube
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import ConfigMap
from tests.support.apiserver import ApiServer

Cache = dict[str, dict[str, str]]
NAMESPACE = "default"
PAUSE = 0.1


class Official:
    """The informer of the official client, as it comes."""

    resumes = True

    def __init__(self, server: ApiServer) -> None:
        api = kubernetes.config.new_client_from_config(str(server.kubeconfig))
        core = kubernetes.client.CoreV1Api(api)
        self.expired = 0
        self._informer = kubernetes.informer.SharedInformer(
            core.list_namespaced_config_map, namespace=NAMESPACE
        )
        self._informer.add_event_handler("ERROR", self._on_error)

    def _on_error(self, error: Any) -> None:
        self.expired += getattr(error, "status", None) == 410

    def start(self) -> None:
        self._informer.start()

    def cache(self) -> Cache:
        return {one.metadata.name: dict(one.data or {}) for one in self._informer.cache.list()}

    def stop(self) -> None:
        self._informer.stop()


class _Thread:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self.expired = 0
        self._cache: Cache = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cache(self) -> Cache:
        return dict(self._cache)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(20)

    def _run(self) -> None:
        raise NotImplementedError


class Lightkube(_Thread):
    """A list, a watch from there on that resumes where it was, and both anew after a 410."""

    resumes = True

    def __init__(self, server: ApiServer) -> None:
        super().__init__()
        config = lightkube.KubeConfig.from_file(str(server.kubeconfig))
        self._client = lightkube.Client(config=config)
        self._version: str | None = None

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow()
            except ApiError as error:
                self.expired += error.status.code == 410
                self._version = None
            except httpx2.HTTPError:
                self._stopped.wait(PAUSE)

    def _follow(self) -> None:
        if self._version is None:
            found = self._client.list(ConfigMap, namespace=NAMESPACE)
            self._cache = {one.metadata.name: one.data or {} for one in found}
            self._version = found.resourceVersion
        events = self._client.watch(ConfigMap, namespace=NAMESPACE, resource_version=self._version)
        for kind, one in events:
            if kind == "DELETED":
                self._cache.pop(one.metadata.name, None)
            else:
                self._cache[one.metadata.name] = one.data or {}
            self._version = one.metadata.resourceVersion


class Kr8s(_Thread):
    """A watch without a version, anew after every end of the stream: it begins with all there is.

    A list before it would leave a gap in which deletions are missed, on any server.
    """

    resumes = False

    def __init__(self, server: ApiServer) -> None:
        super().__init__()
        self._kubeconfig = str(server.kubeconfig)

    def _run(self) -> None:
        asyncio.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        following = asyncio.create_task(self._follow())
        await asyncio.to_thread(self._stopped.wait)
        following.cancel()

    async def _follow(self) -> None:
        while True:
            try:
                await self._follow_once(await kr8s.asyncio.api(kubeconfig=self._kubeconfig))
            except (httpx.HTTPError, kr8s.APITimeoutError, kr8s.ServerError, ConnectionError):
                await asyncio.sleep(PAUSE)

    async def _follow_once(self, api: Any) -> None:
        self._cache = {}
        async for kind, one in api.watch("configmaps", namespace=NAMESPACE):
            if kind == "DELETED":
                self._cache.pop(one.name, None)
            else:
                self._cache[one.name] = dict(one.raw.get("data") or {})


FOLLOWERS: list[Callable[[ApiServer], Official | Lightkube | Kr8s]] = [Official, Lightkube, Kr8s]
