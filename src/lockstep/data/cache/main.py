"""The process ``lockstep data-cache``: one per node that has datasets."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from lockstep.api.core import NODES
from lockstep.api.dataset_cache import (
    CACHE_NODE_LABEL,
    CAN_CACHE_LABEL,
    DATASET_CACHES,
    NO_VIEWS_ANNOTATION,
    DatasetCache,
    label_of,
)
from lockstep.data.cache.dataset_worker import DatasetWorker
from lockstep.data.cache.directories import Directories
from lockstep.data.cache.metrics import metrics
from lockstep.data.cache.serving import Server
from lockstep.data.cache.tls import Shown
from lockstep.data.cache.views import Views
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import ApiError
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.runtime.endpoints import Endpoints, Ports
from lockstep.runtime.health import Health

log = logging.getLogger(__name__)

AGAIN: Final = 5.0
"""Seconds until what the API server refused is tried again."""


async def run(
    *,
    kubeconfig: Path | None,
    node: str,
    data: Path,
    hide: Sequence[Path] = (),
    local: Sequence[Path] = (),
    listen: str = "127.0.0.1:0",
    kubelet: Path | None = None,
    ports: Ports | None = None,
    ready: Callable[[str], None],
) -> None:
    """Keep this node's datasets below *data* until cancelled.

    Directories of the node are no source where they hold one of *hide*, or lie in it. Other nodes
    and clients reach the cache at *listen*. With the directory of a *kubelet* it runs in a
    container of the node, and mounts datasets into pods as a CSI driver; then directories in
    *local* alone are sources.

    Raises:
        OSError: when *data* is in use by another cache, or cannot be used.
    """
    directories = Directories.of(data, hide, local, kubelet)
    with _alone(data) as place:
        async with Client(ClusterConfig.load(kubeconfig)) as client:
            cache = _Cache(client, node, place, directories, kubelet)
            health = Health(cache.problems, cache.metrics)
            endpoints = Endpoints(ports or Ports(), health, client)
            await endpoints.start()
            try:
                await cache.run(listen, ready)
            finally:
                await endpoints.close()


@contextlib.contextmanager
def _alone(data: Path) -> Iterator[Path]:
    data = data.resolve()
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(data / "cache.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise OSError(f"{data} is in use by another data cache") from None
    try:
        yield data
    finally:
        os.close(fd)


class _Cache:
    """All datasets of the node."""

    def __init__(
        self,
        client: Client,
        node: str,
        root: Path,
        directories: Directories,
        kubelet: Path | None = None,
    ) -> None:
        self.client, self.name, self.root = client, node, root
        self.directories, self.kubelet = directories, kubelet
        self.recorder = Recorder(client, "data-cache")
        self.views = Views(root, apart=kubelet is not None)
        self.address = self.certificate = ""
        selector = f"{CACHE_NODE_LABEL}={label_of(node)}"
        self._informer = Informer(client, DATASET_CACHES, label_selector=selector)
        self._workers: dict[str, tuple[DatasetWorker, asyncio.Task[None]]] = {}
        self._removals = set[asyncio.Task[None]]()

    async def run(self, listen: str, ready: Callable[[str], None]) -> None:
        # Beyond this machine, where pods and other nodes come, nothing is said in the clear.
        beyond = not ip_address(listen.rpartition(":")[0].strip("[]")).is_loopback
        shown = Shown.create(self.name) if beyond else None
        self.certificate = shown.digest if shown is not None else ""
        tls = shown.context if shown is not None else None
        server = Server(self._find, self.metrics, listen, tls)
        self.address = server.address
        informing = asyncio.create_task(self._informer.run())
        try:
            await self._informer.wait_synced()
            await asyncio.to_thread(self._sweep, {one.metadata.uid for one in self._informer})
            self._informer.subscribe(self._on_change)
            async with asyncio.TaskGroup() as group:
                if self.kubelet is not None:
                    group.create_task(self._serve_kubelet(self.kubelet))
                ready(f"ready data cache of {self.name} at {self.address}")
                await informing
        finally:
            tasks = [informing, *(task for _, task in self._workers.values()), *self._removals]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            server.close()
            await self.views.close()
            await self.recorder.close()

    async def _serve_kubelet(self, kubelet: Path) -> None:
        """Mount datasets into pods of this node, which says that it can keep them."""
        from lockstep.data.csi.node import NodeDriver

        await self._say_so()
        await NodeDriver(self.client, self.name, self._informer.get, kubelet=kubelet).run()

    async def _say_so(self) -> None:
        why_not = None if self.views.possible else "it has no /dev/fuse"
        marks: dict[str, Any] = {"annotations": {NO_VIEWS_ANNOTATION: why_not}}
        body = {"metadata": {"labels": {CAN_CACHE_LABEL: "true"}, **marks}}
        while True:
            try:
                await self.client.patch(NODES, self.name, body)
            except ApiError as error:
                log.warning("node %s cannot be labelled: %s; again", self.name, error)
                await asyncio.sleep(AGAIN)
            else:
                return

    def problems(self) -> list[str]:
        """Return what keeps the cache from its work."""
        return [] if self._informer.synced else ["the datasets of this node are not known yet"]

    def metrics(self) -> bytes:
        """Return the metrics of all datasets."""
        return metrics(self._known())

    def _known(self) -> list[DatasetWorker]:
        return [worker for worker, _ in self._workers.values()]

    def _find(self, uid: str) -> DatasetWorker | None:
        return next((one for one in self._known() if one.uid_of_peers == uid), None)

    def make_room(self, asking: DatasetWorker, size: int) -> int:
        """Let datasets that nothing reads go for *size* bytes; return how many went."""
        freed = 0
        # Where a quota of the namespace is what is short, only its own datasets help.
        short = not self.fits(asking, size)
        for one in sorted(self._known(), key=lambda worker: worker.last_read):
            if short and _space(one) != _space(asking):
                continue
            if one is not asking and one.idle and freed < size:
                freed += one.shrink(size - freed)
        return freed

    def fits(self, asking: DatasetWorker, size: int) -> bool:
        """Tell whether *size* bytes more fit the quota of the namespace of *asking*."""
        quota = asking.cache.spec.quota
        if not quota:
            return True
        taken = sum(_taken(one) for one in self._known() if _space(one) == _space(asking))
        return taken + size <= quota

    def _on_change(self, change: Change[DatasetCache]) -> None:
        new, old = change.new, change.old
        gone = old is not None and (new is None or old.metadata.uid != new.metadata.uid)
        if gone and old is not None and old.metadata.uid in self._workers:
            self._drop(old.metadata.uid)
        if new is None or new.spec.node != self.name:
            return
        uid = new.metadata.uid
        if uid in self._workers:
            self._workers[uid][0].update(new)
            return
        worker = DatasetWorker(self, new)
        self._workers[uid] = worker, asyncio.create_task(worker.run())

    def _drop(self, uid: str) -> None:
        worker, task = self._workers.pop(uid)
        task.cancel()

        async def remove() -> None:
            await asyncio.gather(task, return_exceptions=True)
            await worker.remove()

        removal = asyncio.create_task(remove())
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    def _sweep(self, known: set[str]) -> None:
        """Remove what belongs to datasets that went while the cache was away."""
        for kind in ("manifests", "files"):
            place = self.root / kind
            for one in place.iterdir() if place.exists() else ():
                if one.name not in known:
                    shutil.rmtree(one, ignore_errors=True)


def _space(worker: DatasetWorker) -> str:
    return worker.cache.metadata.namespace


def _taken(worker: DatasetWorker) -> int:
    """Return the bytes that a dataset takes here, with those on their way."""
    if worker.supply is None:
        return 0
    account = worker.supply.terms.account
    return account.used + account.reserved
