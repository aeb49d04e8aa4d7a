"""What the node's cache counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

from lockstep.api.dataset_cache import DatasetCache
from lockstep.data.cache.supply import Supply
from lockstep.data.core.waits import Waits


class Counted(Protocol):
    """A dataset whose figures are shown."""

    cache: DatasetCache
    waits: Waits

    @property
    def supply(self) -> Supply | None:
        """Return what brings its chunks here, once a version is bound."""


_READS: Final = "lockstep_data_read_bytes_total"
_HELP: Final = {
    _READS: "Bytes of a dataset by where they came from: disk, memory, peer or store",
    "lockstep_data_reads_total": "Reads by whether all of it was on the node",
    "lockstep_data_hit_ratio": "Share of reads that found all they asked for on the node",
    "lockstep_data_served_bytes_total": "Bytes given to other nodes",
    "lockstep_data_evicted_bytes_total": "Bytes that made room for others",
    "lockstep_data_wait_seconds_total": "Seconds that reads waited for bytes not on the node",
    "lockstep_data_job_wait_seconds_total": "Of those, the seconds of each job",
    "lockstep_data_cached_bytes": "Bytes on the node",
    "lockstep_data_capacity_bytes": "Bytes that may lie on the node",
}


def figures(supply: Supply) -> dict[str, Any]:
    """Return the fields of a DatasetCache's status that say what *supply* has and has done."""
    stock, counts = supply.stock, supply.counts
    return {
        "version": stock.manifest.version,
        "path": str(stock.place),
        "files": len(stock.manifest.entries),
        "bytes": stock.manifest.bytes,
        "cached_files": stock.files,
        "cached_bytes": stock.bytes,
        "fetched_bytes": counts.store,
        "peer_bytes": counts.peer,
        "served_bytes": counts.served,
        "read_bytes": counts.disk,
        "evicted_bytes": counts.evicted,
        "waited_seconds": round(counts.waited, 1),
    }


def metrics(datasets: Iterable[Counted]) -> bytes:
    """Return the figures of *datasets* in Prometheus's text format."""
    lines: dict[str, list[str]] = {name: [] for name in _HELP}
    for one in datasets:
        if one.supply is not None:
            _count(one, one.supply, lines)
    text = ""
    for name, samples in lines.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        text += f"# HELP {name} {_HELP[name]}\n# TYPE {name} {kind}\n" + "".join(samples)
    return text.encode()


def _count(one: Counted, supply: Supply, lines: dict[str, list[str]]) -> None:
    counts, meta = supply.counts, one.cache.metadata
    labels = f'namespace="{meta.namespace}",dataset="{one.cache.spec.dataset}"'

    def add(name: str, value: float, more: str = "") -> None:
        lines[name].append(f"{name}{{{labels}{more}}} {value:g}\n")

    for source in ("disk", "memory", "peer", "store"):
        lines[_READS].append(f'{_READS}{{{labels},source="{source}"}} {getattr(counts, source)}\n')
    add("lockstep_data_reads_total", counts.hits, ',result="hit"')
    add("lockstep_data_reads_total", counts.misses, ',result="miss"')
    add("lockstep_data_hit_ratio", counts.hits / max(1, counts.hits + counts.misses))
    add("lockstep_data_served_bytes_total", counts.served)
    add("lockstep_data_evicted_bytes_total", counts.evicted)
    add("lockstep_data_wait_seconds_total", counts.waited)
    one.waits.note(counts.waited, one.cache.spec.jobs)
    for job, seconds in one.waits.seconds.items():
        add("lockstep_data_job_wait_seconds_total", seconds, f',job="{job}"')
    add("lockstep_data_cached_bytes", supply.stock.bytes)
    add("lockstep_data_capacity_bytes", supply.terms.account.limit)
