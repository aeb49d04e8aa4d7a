"""The recorder of jobs: keeps the last state of each, with its history, after the job is gone."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.job_record import kept
from lockstep.api.packing import pack
from lockstep.api.training import TrainingJob
from lockstep.insight.history.records import KeptJob
from lockstep.insight.history.store import Store
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Key

SWEEP_SECONDS: Final = 60.0
"""How often jobs on record are held against what is there."""
KEPT_SECONDS: Final = 90 * 86_400.0
"""How long a deleted job stays on record."""
DELETING: Final = "Deleting"
MOST_TOLD: Final = 200
"""Jobs in one answer, the newest."""

log = logging.getLogger(__name__)


@dataclass
class JobRecorder:
    """Writes each state of each job over the one before, and when the job was deleted."""

    jobs: Informer[TrainingJob]
    store: Store
    kept_seconds: float = KEPT_SECONDS
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Bring the job at *key* onto record.

        Raises:
            sqlite3.Error: when the record cannot be written.
        """
        job = self.jobs.get(*key)
        if job is not None:
            await asyncio.to_thread(self._put, job)
        else:
            await asyncio.to_thread(self.close_gone, key)
        return None

    def _put(self, job: TrainingJob) -> None:
        if job.status.phase == DELETING:
            # What it did until then is more than that it goes.
            for one in self.store.jobs(job.metadata.namespace, job.metadata.name, MOST_TOLD):
                if one.uid == job.metadata.uid:
                    job = _as_before(job, msgspec.json.decode(zlib.decompress(one.body)))
        self.store.put_job(packed(job))

    def close_gone(self, key: Key | None = None) -> None:
        """Write that jobs on record are deleted which are no longer there, of one name or all.

        Raises:
            sqlite3.Error: when the record cannot be written.
        """
        there = {job.metadata.uid for job in self.jobs}
        opened = self.store.jobs_there()
        gone = [uid for uid, *where in opened if uid not in there and key in (None, tuple(where))]
        if gone:
            self.store.jobs_gone(gone, self.clock())

    async def sweep(self) -> None:
        """From now on close and forget what is due, again and again."""
        while True:
            try:
                await asyncio.to_thread(self.close_gone)
                await asyncio.to_thread(self.store.forget_jobs, self.clock() - self.kept_seconds)
            except sqlite3.Error as error:
                log.error("jobs cannot be recorded: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)


def _as_before(job: TrainingJob, record: Any) -> TrainingJob:
    """Return *job*, which is being deleted, with the phase and the message of its *record*."""
    before = record.get("status", {})
    told = {"phase": before.get("phase", ""), "message": before.get("message", "")}
    return structs.replace(job, status=structs.replace(job.status, **told))


def packed(job: TrainingJob) -> KeptJob:
    """Return the record of *job*."""
    meta = job.metadata
    deleted = timestamp.read(meta.deletion_timestamp)
    body = zlib.compress(msgspec.json.encode(kept(job)))
    created = meta.creation_timestamp or ""
    return KeptJob(meta.uid, meta.namespace, meta.name, created, deleted, body)


def told(store: Store, namespace: str, name: str, since: float, most_bytes: int) -> str:
    """Return the newest jobs on record as text, as many as fit; none from before *since*.

    Raises:
        sqlite3.Error: when the records cannot be read.
    """
    most = MOST_TOLD
    while True:
        found = store.jobs(namespace, name, most)
        known = [one for one in found if (timestamp.read(one.created) or 0.0) >= since]
        text = pack([_record(one) for one in known])
        if len(text) < most_bytes or most <= 1:
            return text
        most //= 2


def _record(one: KeptJob) -> dict[str, object]:
    # A job of an earlier version is handed on as it was written.
    deleted = timestamp.show(one.deleted) if one.deleted is not None else ""
    return {"job": msgspec.Raw(zlib.decompress(one.body)), "deleted": deleted}
