"""What a dataset's status says, in Fluid's fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lockstep.compat.fluid.ignored import ignored_of
from lockstep.compat.fluid.objects import Condition, DatasetStatus, OperationStatus
from lockstep.data.core.dataset_state import Seen

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
        wanted.append(_ignored(names))
    rejected = found.status.rejected if found else []
    if rejected:
        text = f"keys that cannot be files: {'; '.join(rejected)}"
        wanted.append(("KeysRejected", "True", "NotAFile", text))
    return DatasetStatus(
        phase=phase,
        ufs_total=in_words(total) if found else "",
        file_num=str(found.status.files) if found else "",
        cache_states=_states(seen, total) if found else {},
        conditions=[_condition(seen.dataset.status.conditions, one, now) for one in wanted],
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
    states = {"cached": in_words(held), "cacheCapacity": in_words(capacity)}
    # Of no files no part is there.
    return {**states, "cachedPercentage": f"{100 * most / total:.1f}%"} if total else states


def with_ignored(operation: Any, status: OperationStatus, now: str) -> OperationStatus:
    """Return *status* with a condition on fields of *operation* that mean nothing, if any do."""
    names = ignored_of(operation.spec)
    if not names:
        return status
    told = _condition(operation.status.conditions, _ignored(names), now)
    others = [one for one in status.conditions if one.type != told.type]
    return msgspec.structs.replace(status, conditions=[*others, told])


def _ignored(names: Iterable[str]) -> tuple[str, str, str, str]:
    text = f"these fields mean nothing to the cache: {', '.join(names)}"
    return "OptionsIgnored", "True", "EngineSpecific", text


def _condition(
    before: Iterable[Condition], wanted: tuple[str, str, str, str], now: str
) -> Condition:
    kind, status, reason, message = wanted
    old = next((one for one in before if one.type == kind), None)
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
