"""Logs of pods that are gone, kept on the node within bounds of age, size and number.

``DATA/kept/UID`` holds the logs of a pod as they lay in its home, and ``pod.json`` says whose
they are. The oldest go first.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from lockstep.api import names
from lockstep.api.pipeline import KEPT_LOGS, RUN_LABEL
from lockstep.keys.files import write_private
from lockstep.kube.kept_logs import KeptLog
from lockstep.nodes.process import logs, paths
from lockstep.nodes.process.home import PodHome, Record

MAX_AGE: Final = 7 * 86400.0
"""Seconds after which the logs of a pod that is gone are removed."""
MAX_BYTES: Final = 1 << 30
"""Bytes of all logs of pods that are gone."""
MAX_PODS: Final = 5000
_RECORD: Final = "pod.json"


class LogEntry(KeptLog, frozen=True, kw_only=True, omit_defaults=True):
    """One pod of a job whose logs are on this node."""

    namespace: str
    job: str = ""
    size: int = 0

    @classmethod
    def of(cls, record: Record, *, ended: float = 0.0, size: int = 0) -> LogEntry:
        """Return the entry of the pod with *record*."""
        labels = record.labels
        run = labels.get(RUN_LABEL)
        return cls(
            namespace=record.namespace,
            pod=record.name,
            uid=record.uid,
            job=labels.get(names.JOB_LABEL, KEPT_LOGS.format(run) if run else ""),
            job_uid=record.owner,
            role=labels.get(names.ROLE_LABEL, ""),
            index=labels.get(names.INDEX_LABEL, ""),
            attempt=labels.get(names.ATTEMPT_LABEL, ""),
            containers=record.containers,
            started=record.accepted_at,
            ended=ended,
            size=size,
        )


class KeptLogs:
    """The logs of the pods that have left this node."""

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._root, self._clock = root, clock
        self._entries = {entry.uid: entry for entry in _stored(root)}
        self.sweep()

    def keep(self, home: PodHome) -> None:
        """Take over the logs of a pod that leaves the node, if it wrote any."""
        size = sum(one.stat().st_size for one in home.logs.rglob("*") if one.is_file())
        if not size:
            return
        entry = LogEntry.of(home.record, ended=self._clock(), size=size)
        target = self._root / paths.uid(entry.uid)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        # The record goes along, so that logs and record arrive at once.
        write_private(home.logs / _RECORD, msgspec.json.encode(entry))
        home.logs.rename(target)
        self._entries[entry.uid] = entry
        self.sweep()

    def of_job(self, namespace: str, job: str) -> list[LogEntry]:
        """Return the pods of a job whose logs are kept."""
        self.sweep()
        return [e for e in self._entries.values() if (e.namespace, e.job) == (namespace, job)]

    def find(
        self,
        namespace: str,
        pod: str,
        uid: str,
        container: str,
        *,
        previous: bool = False,
        after: float = 0.0,
    ) -> Path | None:
        """Return the last log of a container of a pod that is gone, or none.

        With *previous* it is the log of the run before the last. A pod that came sooner than
        *after* was of another namespace of that name.
        """
        entry = self._entries.get(uid)
        if entry is None or (entry.namespace, entry.pod) != (namespace, pod):
            return None
        if entry.started < after:
            return None
        folder = self._root / uid / paths.label(container)
        runs = sorted(int(one.stem) for one in folder.glob("*.log") if one.stem.isdigit())
        wanted = runs[-2:-1] if previous else runs[-1:]
        return folder / f"{wanted[0]}.log" if wanted else None

    def sweep(self) -> None:
        """Remove what is too old or too much, the oldest first."""
        oldest_first = sorted(self._entries.values(), key=lambda entry: entry.ended)
        total, count = sum(entry.size for entry in oldest_first), len(oldest_first)
        for entry in oldest_first:
            fits = total <= MAX_BYTES and count <= MAX_PODS
            if fits and entry.ended > self._clock() - MAX_AGE:
                return
            total, count = total - entry.size, count - 1
            del self._entries[entry.uid]
            shutil.rmtree(self._root / entry.uid, ignore_errors=True)


def of_home(home: PodHome, container: str) -> Path | None:
    """Return the log of the last run of a container whose pod is still here, or none."""
    runs = home.attempts(container)
    found = home.log(container, runs[-1].attempt) if runs else None
    return found if found is not None and logs.files_of(found) else None


def _stored(root: Path) -> Iterator[LogEntry]:
    for folder in root.iterdir() if root.exists() else ():
        try:
            yield msgspec.json.decode((folder / _RECORD).read_bytes(), type=LogEntry)
        except (OSError, msgspec.DecodeError):
            shutil.rmtree(folder, ignore_errors=True)
