"""The process ``lockstep data-cache``: one per node that has datasets."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lockstep.api.dataset_cache import CACHE_NODE_LABEL, DATASET_CACHES, DatasetCache, label_of
from lockstep.data.cache.keeper import Keeper
from lockstep.data.cache.metrics import metrics
from lockstep.data.cache.serving import Server
from lockstep.data.cache.views import Views
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)


async def run(
    *,
    kubeconfig: Path | None,
    node: str,
    data: Path,
    hide: Sequence[Path] = (),
    listen: str = "127.0.0.1:0",
    ready: Callable[[str], None],
) -> None:
    """Keep this node's datasets below *data* until cancelled.

    Directories of the node are no source where they hold one of *hide*, or lie in it. Other nodes
    and clients reach the cache at *listen*.

    Raises:
        OSError: when *data* is in use by another cache, or cannot be used.
    """
    hidden = tuple(one.resolve() for one in (*hide, data))
    with _alone(data) as place:
        async with Client(ClusterConfig.load(kubeconfig)) as client:
            await _Cache(client, node, place, hidden).run(listen, ready)


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

    def __init__(self, client: Client, node: str, root: Path, hidden: tuple[Path, ...]) -> None:
        self.client, self.name, self.root, self.hidden = client, node, root, hidden
        self.recorder = Recorder(client, "data-cache")
        self.views = Views(root)
        self.address = ""
        selector = f"{CACHE_NODE_LABEL}={label_of(node)}"
        self._informer = Informer(client, DATASET_CACHES, label_selector=selector)
        self._keepers: dict[str, tuple[Keeper, asyncio.Task[None]]] = {}
        self._removals = set[asyncio.Task[None]]()

    async def run(self, listen: str, ready: Callable[[str], None]) -> None:
        server = Server(self._find, lambda: metrics(self._known()), listen)
        self.address = server.address
        informing = asyncio.create_task(self._informer.run())
        try:
            await self._informer.wait_synced()
            await asyncio.to_thread(self._sweep, {one.metadata.uid for one in self._informer})
            self._informer.subscribe(self._on_change)
            ready(f"ready data cache of {self.name} at {self.address}")
            await informing
        finally:
            tasks = [informing, *(task for _, task in self._keepers.values()), *self._removals]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            server.close()
            await self.views.close()
            await self.recorder.close()

    def _known(self) -> list[Keeper]:
        return [keeper for keeper, _ in self._keepers.values()]

    def _find(self, uid: str) -> Keeper | None:
        return next((one for one in self._known() if one.uid_of_peers == uid), None)

    def make_room(self, asking: Keeper, size: int) -> int:
        """Let datasets that nothing reads go for *size* bytes; return how many went."""
        freed = 0
        # Where a quota of the namespace is what is short, only its own datasets help.
        short = not self.fits(asking, size)
        for one in sorted(self._known(), key=lambda keeper: keeper.last_read):
            if short and _space(one) != _space(asking):
                continue
            if one is not asking and one.idle and freed < size:
                freed += one.shrink(size - freed)
        return freed

    def fits(self, asking: Keeper, size: int) -> bool:
        """Tell whether *size* bytes more fit the quota of the namespace of *asking*."""
        quota = asking.cache.spec.quota
        if not quota:
            return True
        taken = sum(_taken(one) for one in self._known() if _space(one) == _space(asking))
        return taken + size <= quota

    def _on_change(self, change: Change[DatasetCache]) -> None:
        new, old = change.new, change.old
        gone = old is not None and (new is None or old.metadata.uid != new.metadata.uid)
        if gone and old is not None and old.metadata.uid in self._keepers:
            self._drop(old.metadata.uid)
        if new is None or new.spec.node != self.name:
            return
        uid = new.metadata.uid
        if uid in self._keepers:
            self._keepers[uid][0].update(new)
            return
        keeper = Keeper(self, new)
        self._keepers[uid] = keeper, asyncio.create_task(keeper.run())

    def _drop(self, uid: str) -> None:
        keeper, task = self._keepers.pop(uid)
        task.cancel()

        async def remove() -> None:
            await asyncio.gather(task, return_exceptions=True)
            await keeper.remove()

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


def _space(keeper: Keeper) -> str:
    return keeper.cache.metadata.namespace


def _taken(keeper: Keeper) -> int:
    """Return the bytes that a dataset takes here, with those on their way."""
    if keeper.supply is None:
        return 0
    account = keeper.supply.terms.account
    return account.used + account.reserved
