"""Which processes on a card belong to which pod, by the control groups of the processes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from lockstep.devices.core.exposition import Use
from lockstep.devices.core.holders import Holder
from lockstep.devices.sampling import Process

_UID = re.compile(r"[0-9a-f]{8}[-_](?:[0-9a-f]{4}[-_]){3}[0-9a-f]{12}")
PROC = Path("/proc")


def pod_of(pid: int, proc: Path = PROC) -> str:
    """Return the UID of the pod that a process runs in; empty where nothing tells it."""
    try:
        text = (proc / str(pid) / "cgroup").read_text()
    except OSError:
        return ""
    found = _UID.search(text)
    return found[0].replace("_", "-") if found else ""


def uses(
    processes: Iterable[Process], holders: Sequence[Holder], proc: Path = PROC
) -> dict[Holder, Use]:
    """Return what the processes of each holder use of the card that they share."""
    by_pod = {holder.uid: holder for holder in holders}
    found: dict[Holder, Use] = {}
    for process in processes:
        holder = by_pod.get(pod_of(process.pid, proc))
        if holder is not None:
            before = found.get(holder, Use())
            found[holder] = Use(before.memory + process.memory, before.sm + process.sm)
    return found
