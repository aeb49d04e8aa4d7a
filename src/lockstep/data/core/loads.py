"""Warm-ups: what they ask of which nodes, and how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from lockstep.api import quantity, timestamp
from lockstep.api.dataset_cache import DatasetCache, TargetStatus
from lockstep.compat.fluid.objects import DataLoad, OperationStatus, RunAfter, Target
from lockstep.data.core import runs
from lockstep.data.core.dataset_state import Seen
from lockstep.data.core.runs import OVER

TOO_LARGE: Final = "TooLargeForTheCache"
SYNC_EVERY: Final = 300.0
"""Seconds between two listings of a dataset whose runtime says ``autoSync``."""
RATE: Final = "rateLimit"
"""Option of a DataLoad: bytes a second for each node, as ``100Mi``."""


def _paths(load: DataLoad) -> list[Target]:
    return load.spec.target or [Target()]


def _unserved(load: DataLoad) -> str:
    """Return why *load* cannot be carried out; empty when it can."""
    if load.spec.policy not in ("", "Once", "Cron", "OnEvent"):
        return f"spec.policy is {load.spec.policy!r}: it must be Once, Cron or OnEvent"
    if problem := runs.unserved(load):
        return problem
    if (text := load.spec.options.get(RATE)) is not None and not _readable(text):
        return f"spec.options.{RATE} is {text!r}: write bytes a second, as 100Mi"
    named = load.spec.dataset.namespace
    if named and named != load.metadata.namespace:
        return f"spec.dataset.namespace is {named}: a dataset is warmed from its own namespace"
    return ""


def _waiting(seen: Seen) -> list[DataLoad]:
    """Return the warm-ups under way, in the order in which they came."""
    found = [
        one
        for one in seen.loads
        if _active(seen, one) and not _unserved(one) and not waits(seen, one.spec.run_after)
    ]
    return sorted(found, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.uid))


def _active(seen: Seen, load: DataLoad) -> bool:
    """Tell whether *load* runs, or has to."""
    if runs.recurs(load):
        return load.status.phase == "Executing"
    return load.status.phase not in OVER or _renewed(seen, load)


def _renewed(seen: Seen, load: DataLoad) -> bool:
    """Tell whether a warm-up that runs for each version has not run for the one that is bound."""
    bound = next((one.spec.version for one in seen.caches if one.spec.version), "")
    done = load.spec.policy == "OnEvent" and load.status.phase == "Complete"
    return done and load.status.infos.get("version") != bound


def waits(seen: Seen, after: RunAfter | None) -> str:
    """Return the operation that has to be over first, ``KIND/NAME``; empty when none has."""
    if after is None:
        return ""
    which = f"{after.kind}/{after.name}"
    return "" if seen.operations.get(which) == "Complete" else which


def _run(load: DataLoad) -> str:
    """Return what names this run of *load*."""
    return f"{load.metadata.uid}{load.status.last_schedule_time}"


def reload(seen: Seen, now: str, *, synced: bool) -> str:
    """Return what asks for a new listing: the youngest warm-up that wants one, or what did.

    A dataset that is *synced* asks by itself, every ``SYNC_EVERY`` seconds.
    """
    asked = [_run(one) for one in _waiting(seen) if one.spec.load_metadata]
    before = next((one.spec.reload for one in seen.caches if one.spec.reload), "")
    if asked:
        return asked[-1]
    return f"sync-{int(timestamp.parse(now) // SYNC_EVERY)}" if synced else before


def again(seen: Seen, now: str, *, synced: bool) -> float | None:
    """Return in how many seconds a warm-up or a listing falls due by the clock."""
    found = runs.soonest((*seen.loads, *seen.processes), now)
    if synced:
        found.append(SYNC_EVERY - timestamp.parse(now) % SYNC_EVERY)
    return max(0.1, min(found)) if found else None


def rate(seen: Seen) -> int:
    """Return how many bytes a second a node may fetch for warm-ups; 0 is without a limit."""
    given = [text for one in _waiting(seen) if (text := one.spec.options.get(RATE))]
    return min((quantity.to_int(text) for text in given if _readable(text)), default=0)


def _readable(text: str) -> bool:
    try:
        return quantity.to_int(text) > 0
    except ValueError:
        return False


def targets(seen: Seen, nodes: Sequence[str]) -> dict[str, list[str]]:
    """Return which paths the warm-ups want on which of *nodes*."""
    found: dict[str, list[str]] = {}
    for load in _waiting(seen):
        for target in _paths(load):
            wanted = nodes[: target.replicas] if target.replicas else nodes
            for node in wanted:
                found.setdefault(node, []).append(target.path)
    return found


def statuses(seen: Seen, *, bound: bool, now: str) -> dict[str, OperationStatus]:
    """Return the status of each warm-up of the dataset that is not over, by its name."""
    return {
        one.metadata.name: _status(seen, one, bound, now)
        for one in seen.loads
        if one.status.phase not in OVER or _renewed(seen, one) or _recurs(one)
    }


def _status(seen: Seen, load: DataLoad, bound: bool, now: str) -> OperationStatus:
    if problem := _unserved(load):
        return runs.ended(load.status, "Failed", "NotServed", problem, now)
    if which := waits(seen, load.spec.run_after):
        return OperationStatus(phase="Pending", waiting_for={"operationComplete": which})
    if runs.between(load, now):
        return msgspec.structs.replace(load.status, phase=load.status.phase or "Pending")
    if runs.recurs(load) and load.status.phase != "Executing":
        return runs.begun(load, now, {"progress": "0%"})
    found = _executing(seen, load, bound, now)
    if load.spec.policy != "OnEvent":
        return found
    bound_now = next((one.spec.version for one in seen.caches if one.spec.version), "")
    return msgspec.structs.replace(found, infos={**found.infos, "version": bound_now})


def _recurs(load: DataLoad) -> bool:
    return runs.recurs(load) and not _unserved(load)


def _executing(seen: Seen, load: DataLoad, bound: bool, now: str) -> OperationStatus:
    if not bound:
        return OperationStatus(phase="Pending")
    caches = [one for one in seen.caches if _asked(load, one)]
    parts = [part for one in caches for part in _parts(load, one)]
    so_far = msgspec.structs.replace(
        load.status,
        phase="Executing",
        duration="",
        conditions=[],
        waiting_for={},
        started_at=load.status.started_at or now,
        infos={"progress": "0%"},
    )
    if not caches or not _current(seen, load, caches) or None in parts:
        return so_far
    total = _sum([part for part in parts if part is not None])
    so_far = msgspec.structs.replace(so_far, infos=_infos(total, caches))
    partly = [one for one in caches if one.status.reason == TOO_LARGE]
    if partly and not total.done:
        text = f"{partly[0].spec.node}: {partly[0].status.message}"
        return runs.ended(so_far, "Failed", TOO_LARGE, text, now)
    if total.done:
        text = f"{total.files} files, {total.bytes} bytes are cached"
        return runs.ended(so_far, "Complete", "DataLoaded", text, now)
    return so_far


def _asked(load: DataLoad, cache: DatasetCache) -> bool:
    return any(target.path in cache.spec.targets for target in _paths(load))


def _current(seen: Seen, load: DataLoad, caches: Sequence[DatasetCache]) -> bool:
    """Tell whether what the caches say is about the version that is bound."""
    if load.spec.load_metadata and any(one.status.reload != one.spec.reload for one in caches):
        return False
    if load.spec.load_metadata and not any(one.spec.reload == _run(load) for one in seen.caches):
        # A younger warm-up asks for a listing too, which is as good.
        younger = [_run(one) for one in _waiting(seen) if one.spec.load_metadata]
        if not any(one.spec.reload in younger for one in seen.caches):
            return False
    if load.spec.load_metadata and any(one.spec.version != one.status.listed for one in caches):
        return False
    return all(one.status.version == one.spec.version for one in caches)


def _parts(load: DataLoad, cache: DatasetCache) -> list[TargetStatus | None]:
    asked = [one.path for one in _paths(load) if one.path in cache.spec.targets]
    return [cache.status.targets.get(path) for path in asked]


def _sum(parts: Sequence[TargetStatus]) -> TargetStatus:
    return TargetStatus(
        files=sum(one.files for one in parts),
        bytes=sum(one.bytes for one in parts),
        cached_files=sum(one.cached_files for one in parts),
        cached_bytes=sum(one.cached_bytes for one in parts),
    )


def _infos(total: TargetStatus, caches: Sequence[DatasetCache]) -> dict[str, str]:
    # Files without bytes count too: a share of bytes alone would be whole too early.
    most = total.bytes + total.files
    share = 100 if total.done else int(99 * (total.cached_bytes + total.cached_files) / most)
    found = {
        "progress": f"{share}%",
        "files": f"{total.cached_files}/{total.files}",
        "bytes": f"{total.cached_bytes}/{total.bytes}",
    }
    rate = sum(one.status.rate for one in caches)
    if rate and not total.done:
        found["secondsLeft"] = str((total.bytes - total.cached_bytes) // rate)
    if failed := [one for one in caches if one.status.phase == "Failed"]:
        found["problem"] = f"{failed[0].spec.node}: {failed[0].status.message}"
    return found
