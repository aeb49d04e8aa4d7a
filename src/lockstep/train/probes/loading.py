"""The data loader: how long the step waits for it, and what its fetches cost where they run."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from typing import Any

from . import experiment
from .sampling import Sampler
from .totals import Sheet, Totals

TELL_EVERY = 1.0
"""Seconds between two files of a worker."""
_NETWORKED = ("nfs", "cifs", "smb", "fuse", "ceph", "lustre", "9p", "gpfs", "beegfs", "s3")


class Fetches:
    """What one process spends on getting samples."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._inside = threading.local()
        self._sheet: Sheet | None = None
        self._told = 0.0
        self._mounts = _mounts()
        sys.addaudithook(self._heard)
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._totals.reset()
        self._sheet = None

    def _heard(self, event: str, arguments: Any) -> None:
        if event not in ("open", "socket.connect"):
            return
        if not getattr(self._inside, "fetch", False):
            return
        if event == "socket.connect":
            self._totals.add("fetch.connects", 1)
        elif isinstance(arguments[0], str):
            self._totals.add("fetch.opens", 1)
            if self._mounts and arguments[0].startswith(self._mounts):
                self._totals.add("fetch.remoteOpens", 1)

    @property
    def fetching(self) -> bool:
        """Whether this process' main thread is getting a batch."""
        return self._busy

    _busy = False

    def wrap(self, fetch: Any) -> Any:
        """Return *fetch* of a fetcher, measured."""
        totals = self._totals

        def measured(fetcher: Any, index: Any) -> Any:
            before = _cost()
            self._inside.fetch = self._busy = True
            try:
                return experiment.fetched(fetch, fetcher, index)
            finally:
                self._inside.fetch = self._busy = False
                after = _cost()
                for name, one, other in zip(_COSTS, before, after):
                    totals.add("fetch." + name, other - one)
                totals.add("fetch.batches", 1)
                totals.add("fetch.samples", len(index) if isinstance(index, (list, tuple)) else 1)
                self._tell(after[0])

        return measured

    def _tell(self, now: float) -> None:
        """In a worker, which has no other thread: write the file now and then."""
        from torch.utils.data import get_worker_info

        if get_worker_info() is None:
            return
        if self._sheet is None:
            self._sheet = Sheet(os.environ["LOCKSTEP_PROBES"], self._totals, "fetch")
            Sampler(self._totals).busy = lambda: self._busy
        if now - self._told >= TELL_EVERY:
            self._told = now
            self._sheet.write()


_COSTS = ("wall", "user", "system", "queued", "bytes", "reads")


def _cost() -> tuple[float, ...]:
    """Return seconds and bytes of this thread until now, in the order of ``_COSTS``."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    queued = read = calls = 0.0
    try:
        with open("/proc/thread-self/schedstat") as file:  # noqa: PTH123
            queued = int(file.read().split()[1]) / 1e9
        with open("/proc/thread-self/io") as file:  # noqa: PTH123
            lines = dict(line.split(": ") for line in file.read().splitlines())
        read, calls = int(lines["rchar"]), int(lines["syscr"])
    except (OSError, ValueError, KeyError, IndexError):
        pass
    return time.monotonic(), used.ru_utime, used.ru_stime, queued, read, calls


def _mounts() -> tuple[str, ...]:
    """Return where file systems are mounted that lie beyond the network, or behind FUSE."""
    try:
        with open("/proc/mounts") as file:  # noqa: PTH123
            rows = [line.split() for line in file]
    except OSError:
        return ()
    return tuple(
        row[1].rstrip("/") + "/" for row in rows if row[2].startswith(_NETWORKED) and row[1] != "/"
    )


def watch_fetches(module: Any, totals: Totals) -> None:
    """Measure the fetchers of ``torch.utils.data._utils.fetch``."""
    fetches = Fetches(totals)
    for kind in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        fetcher = getattr(module, kind)
        fetcher.fetch = fetches.wrap(fetcher.fetch)


def watch_loader(module: Any, totals: Totals) -> None:
    """Measure how long iterators of ``torch.utils.data.dataloader`` are waited for."""
    loader, iterator = module.DataLoader, module._BaseDataLoaderIter
    begin, start, following = loader.__init__, loader.__iter__, iterator.__next__

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **experiment.loader_options(arguments, options))

    def iterate(self: Any) -> Any:
        begun = time.monotonic()
        try:
            found = start(self)
        finally:
            totals.add("loader.starting", time.monotonic() - begun)
            totals.add("loader.epochs", 1)
        found._lockstep_first = True
        workers = int(self.num_workers or 0)
        totals.facts["loader"] = {
            "workers": workers,
            "prefetch": int(self.prefetch_factor or 0),
            "persistent": bool(self.persistent_workers),
            "pinned": bool(self.pin_memory),
            "batch": int(self.batch_size or 0),
        }
        return found

    def step(self: Any) -> Any:
        begun = time.monotonic()
        try:
            return experiment.batch(self, following)
        finally:
            waited = time.monotonic() - begun
            totals.add("loader.wait", waited)
            if getattr(self, "_lockstep_first", False):
                self._lockstep_first = False
                totals.add("loader.first", waited)

    loader.__init__, loader.__iter__, iterator.__next__ = init, iterate, step
