"""What ``explain`` says of data: the share of a dataset that each node has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lockstep.api.dataset_cache import DatasetCache
from lockstep.api.wire import to_builtins


def data_lines(claim: str, caches: Iterable[DatasetCache]) -> list[str]:
    """Return a line for the dataset *claim*, if it is one: which node has how much of it."""
    known = [one for one in caches if one.spec.dataset == claim]
    if not known:
        return []
    shares = sorted(((_share(one), one.spec.node) for one in known), reverse=True)
    told = ", ".join(f"{node} has {share} %" for share, node in shares[:5])
    more = f", {len(shares) - 5} nodes more" if len(shares) > 5 else ""
    return [f"  data: of {claim} {told}{more}; nodes that have more of it are preferred"]


def _share(cache: DatasetCache) -> int:
    status = cache.status
    if status.whole:
        return 100
    return min(99, int(100 * status.cached_bytes / status.bytes)) if status.bytes else 0


def claims_within(obj: Any) -> list[str]:
    """Return the claims that pods' templates in *obj* mount, each once."""
    return list(dict.fromkeys(_claims(to_builtins(obj))))


def _claims(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        claim = tree.get("persistentVolumeClaim")
        if isinstance(claim, dict) and isinstance(name := claim.get("claimName"), str):
            yield name
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _claims(one)
