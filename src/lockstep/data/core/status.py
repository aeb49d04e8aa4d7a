"""What a dataset's status says, in Fluid's fields."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.compat.fluid.objects import Condition, DatasetStatus
from lockstep.data.core.world import Seen

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def in_words(size: float) -> str:
    """Return *size* in bytes as Fluid writes it, as ``1.25GiB``."""
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.2f}{unit}"
        size /= 1024
    return f"{size:.2f}{_UNITS[-1]}"


def dataset_status(
    seen: Seen, phase: str, reason: str, message: str, now: str, *, ignored: Iterable[str] = ()
) -> DatasetStatus:
    """Return the status of the dataset in *seen*."""
    found = max(seen.caches, key=lambda one: one.status.files, default=None)
    total = found.status.bytes if found else 0
    ready = "True" if phase == "Bound" else "False"
    wanted = [("Ready", ready, reason, message)]
    if names := list(ignored):
        text = f"these fields mean nothing to the cache: {', '.join(names)}"
        wanted.append(("OptionsIgnored", "True", "EngineSpecific", text))
    rejected = found.status.rejected if found else []
    if rejected:
        text = f"keys that cannot be files: {'; '.join(rejected)}"
        wanted.append(("KeysRejected", "True", "NotAFile", text))
    return DatasetStatus(
        phase=phase,
        ufs_total=in_words(total) if found else "",
        file_num=str(found.status.files) if found else "",
        cache_states=_states(seen, total) if found else {},
        conditions=[_condition(seen, one, now) for one in wanted],
        runtimes=[
            {"name": one.metadata.name, "namespace": one.metadata.namespace, "type": one.kind}
            for one in seen.runtimes[:1]
        ],
    )


def _states(seen: Seen, total: int) -> dict[str, str]:
    """Return how much is cached: of all nodes, the one that has most counts for the share."""
    held = sum(one.status.cached_bytes for one in seen.caches)
    most = max((one.status.cached_bytes for one in seen.caches), default=0)
    capacity = sum(one.status.capacity for one in seen.caches)
    return {
        "cached": in_words(held),
        "cacheCapacity": in_words(capacity),
        "cachedPercentage": f"{100 * most / total if total else 100:.1f}%",
    }


def _condition(seen: Seen, wanted: tuple[str, str, str, str], now: str) -> Condition:
    kind, status, reason, message = wanted
    old = next((one for one in seen.dataset.status.conditions if one.type == kind), None)
    if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
        return old
    since = old.last_transition_time if old is not None and old.status == status else now
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=since,
    )
