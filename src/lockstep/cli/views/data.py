"""Tables and pages of datasets and of what nodes keep of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockstep.api.dataset_cache import DatasetCache
from lockstep.cli.views.table import NAMESPACE, Column, Table, table
from lockstep.cli.views.times import ago
from lockstep.compat.fluid.objects import DataLoad, Dataset
from lockstep.data.core.status import in_words

_REASON = Column("Reason", text=True)


def dataset_table(datasets: Sequence[Dataset], caches: Sequence[DatasetCache], now: float) -> Table:
    """Return a row for each dataset, with how much of it the best node has."""
    rows = (
        (
            one.metadata.namespace,
            one.metadata.name,
            one.status.phase or "Pending",
            one.status.file_num,
            one.status.ufs_total,
            one.status.cache_states.get("cachedPercentage"),
            ", ".join(sorted(cache.spec.node for cache in of_dataset(one, caches))),
            ago(one.metadata.creation_timestamp, now),
            why(one),
        )
        for one in sorted(datasets, key=lambda o: (o.metadata.namespace, o.metadata.name))
    )
    columns = (NAMESPACE, "Name", "Phase", "Files", "Size", "Cached", "Nodes", "Age", _REASON)
    return table(columns, rows)


def cache_table(caches: Sequence[DatasetCache]) -> Table:
    """Return a row for each dataset on each node: what is there and what comes in now."""
    columns = (
        NAMESPACE,
        "Node",
        "Dataset",
        "Phase",
        "Cached",
        "Size",
        "Room",
        Column("Fetched", number=True),
        "Rate",
        "Waited by",
        _REASON,
    )
    rows = (
        (
            one.metadata.namespace,
            one.spec.node,
            one.spec.dataset,
            one.status.phase,
            in_words(one.status.cached_bytes),
            in_words(one.status.bytes),
            in_words(one.status.capacity),
            in_words(one.status.fetched_bytes),
            f"{in_words(one.status.rate)}/s" if one.status.rate else "",
            _waits(one),
            one.status.message,
        )
        for one in sorted(caches, key=lambda o: (o.spec.node, o.spec.dataset))
    )
    return table(columns, rows)


def _waits(cache: DatasetCache) -> str:
    """Return how many seconds each job that reads now waited for its input on the node."""
    waits = cache.status.job_waits
    return ", ".join(f"{job} {waits.get(job, 0.0):.1f} s" for job in cache.spec.jobs)


def load_table(loads: Sequence[DataLoad], now: float) -> Table:
    """Return a row for each warm-up, the youngest last."""
    rows = (
        (
            one.metadata.name,
            one.status.phase or "Pending",
            one.status.infos.get("progress"),
            one.status.infos.get("files"),
            one.status.infos.get("secondsLeft"),
            ago(one.metadata.creation_timestamp, now),
            one.status.infos.get("problem")
            or next((c.message for c in one.status.conditions if c.type == "Failed"), ""),
        )
        for one in sorted(loads, key=lambda o: o.metadata.creation_timestamp or "")
    )
    return table(("Name", "Phase", "Progress", "Files", "Seconds left", "Age", _REASON), rows)


def of_dataset(dataset: Dataset, caches: Iterable[DatasetCache]) -> list[DatasetCache]:
    """Return what nodes keep of *dataset*."""
    meta = dataset.metadata
    return [
        one
        for one in caches
        if (one.metadata.namespace, one.spec.dataset) == (meta.namespace, meta.name)
    ]


def why(dataset: Dataset) -> str:
    """Return what is wrong with *dataset*, or what it waits for; empty when nothing is."""
    return next(
        (one.message for one in dataset.status.conditions if one.type == "Ready" and one.message),
        "",
    )
