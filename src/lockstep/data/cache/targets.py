"""Targets of a node: which files they are, and how many of them are there."""

from __future__ import annotations

import numpy as np

from lockstep.api.dataset_cache import QUOTA_ANNOTATION, TargetStatus
from lockstep.data.cache.stock import Stock


def files(stock: Stock, targets: list[str]) -> list[int]:
    """Return the files of *targets*, target by target, each once."""
    found: dict[int, None] = {}
    for one in targets:
        found.update(dict.fromkeys(stock.below(one)))
    return list(found)


def status(stock: Stock, target: str) -> TargetStatus:
    """Return how much of one target is on the node."""
    indices = np.array(stock.below(target), np.int64)
    whole = indices[stock.whole_files[indices]]
    return TargetStatus(
        files=len(indices),
        bytes=int(stock.chunks.sizes[indices].sum()),
        cached_files=len(whole),
        cached_bytes=int(stock.chunks.sizes[whole].sum()),
    )


def short(whole: int, medium: str, capacity: int, quota: int) -> str:
    """Return in words why a dataset of *whole* bytes is not all here, and what would help.

    *quota* is that of its namespace, where that is what is short; else 0.
    """
    if quota:
        room = f"datasets of its namespace may take {quota:,} bytes together"
        remedy = f"raise the annotation {QUOTA_ANNOTATION} of the namespace"
    else:
        room = f"{medium} takes {capacity:,} bytes"
        remedy = "raise spec.tieredstore.levels[].quota of its runtime"
    return (
        f"the dataset needs {whole:,} bytes on this node and {room}: pods read the rest through "
        f"the view; {remedy} to have all of it here"
    )
