"""Where pods stood, and for how long: the placements of a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lockstep.sim.result.columns import Distinct, Rows, Texts

_ROW = np.dtype(
    [
        ("job", "u4"),
        ("pod", "u4"),
        ("rank", "u4"),
        ("node", "u4"),
        ("devices", "u4"),
        ("start", "f8"),
        ("end", "f8"),
    ]
)


class Stay(NamedTuple):
    """One pod's stay on one node; times in seconds after the start."""

    job: str
    pod: str
    rank: int
    node: str
    gpus: tuple[int, ...]
    nics: tuple[int, ...]
    start: float
    end: float | None
    """None: it was still there at the end of the simulation."""


class PlacementsLog:
    """All stays, in the order in which they ended; 36 bytes each where pods are named alike."""

    def __init__(self, jobs: Texts) -> None:
        self._jobs = jobs
        """The names of the jobs by their numbers; the caller numbers them."""
        self._rows = Rows(_ROW)
        self._pods = Distinct[tuple[bool, str]]()
        """What a pod's name says beyond its job's, or the whole name where it begins otherwise."""
        self._nodes = Distinct[str]()
        self._devices = Distinct[tuple[tuple[int, ...], tuple[int, ...]]]()
        """GPUs and NICs."""

    def add(self, job: int, stay: Stay) -> None:
        """Keep a stay of the job of this number."""
        bare = _bare(stay.job)
        begins = stay.pod.startswith(bare)
        self._rows.add(
            (
                job,
                self._pods.number((begins, stay.pod[len(bare) :] if begins else stay.pod)),
                stay.rank,
                self._nodes.number(stay.node),
                self._devices.number((stay.gpus, stay.nics)),
                stay.start,
                nan if stay.end is None else stay.end,
            )
        )

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Stay]:
        return map(self._stay, range(len(self)))

    def of(self, job: int) -> list[Stay]:
        """Return the stays of the job of this number."""
        return [self._stay(row) for row in np.flatnonzero(self._rows.column("job") == job).tolist()]

    def in_order(self) -> Iterator[Stay]:
        """Yield the stays by their start, then by the names of the jobs, then by rank."""
        by_name = np.empty(len(self._jobs), np.uint32)
        by_name[sorted(range(len(self._jobs)), key=self._jobs.__getitem__)] = np.arange(
            len(self._jobs), dtype=np.uint32
        )
        rows = self._rows
        keys = (rows.column("rank"), by_name[rows.column("job")], rows.column("start"))
        return map(self._stay, np.lexsort(keys))

    def first(self) -> list[NDArray[np.intp]]:
        """Return for each job that stood the numbers of the nodes of the pods that came first."""
        job, start = self._rows.column("job"), self._rows.column("start")
        began = np.full(len(self._jobs), np.inf)
        np.minimum.at(began, job, start)
        rows = np.flatnonzero(start == began[job])
        rows = rows[np.argsort(job[rows], kind="stable")]
        cuts = np.flatnonzero(np.diff(job[rows])) + 1
        node = self._rows.column("node").astype(np.intp)[rows]
        return np.split(node, cuts) if len(rows) else []

    @property
    def nodes(self) -> list[str]:
        """Return the names of the nodes by their numbers."""
        return self._nodes.values

    def _stay(self, number: int) -> Stay:
        job, pod, rank, node, devices, start, end = self._rows[number]
        name = self._jobs[job]
        begins, rest = self._pods.values[pod]
        gpus, nics = self._devices.values[devices]
        return Stay(
            name,
            _bare(name) + rest if begins else rest,
            rank,
            self._nodes.values[node],
            gpus,
            nics,
            start,
            None if isnan(end) else end,
        )


def _bare(job: str) -> str:
    """Return a job's name without its namespace."""
    return job.rpartition("/")[2]
