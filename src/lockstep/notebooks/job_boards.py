"""The TensorBoard of a job that says where its events go: it comes with the job's first start.

*Example:* a job ``llm`` with ``spec.tensorboard: pvc://results/llm`` gets the Tensorboard
``llm-tensorboard``, which ends with the job and sleeps while its page is not open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.names import JOB_LABEL, QUEUE_LABEL
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.compat.kubeflow.tensorboard import TENSORBOARDS, Tensorboard
from lockstep.kube.client import Client
from lockstep.kube.controller import Controller, Key
from lockstep.kube.errors import AlreadyExists, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager

SUFFIX: Final = "-tensorboard"
_SOON: Final = 0.1


@dataclass
class JobBoards:
    """Keeps the Tensorboard of each job that names one."""

    client: Client
    jobs: Informer[TrainingJob]
    boards: Informer[Tensorboard]
    recorder: Recorder

    async def reconcile(self, key: Key) -> float | None:
        """Bring the job's Tensorboard to what the job says; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        job = self.jobs.get(*key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return None
        space, name = key[0], key[1] + SUFFIX
        there = self.boards.get(space, name)
        ours = there is not None and _owned(there, job)
        try:
            if there is not None and ours and not job.spec.tensorboard:
                await self.client.delete(TENSORBOARDS, name, space, uid=there.metadata.uid)
            elif job.spec.tensorboard and job.status.start_time is not None:
                await self._keep(job, there, ours)
        except (AlreadyExists, Conflict):
            return _SOON
        return None

    async def _keep(self, job: TrainingJob, there: Tensorboard | None, ours: bool) -> None:
        body = board_of(job)
        space, name = job.metadata.namespace, body["metadata"]["name"]
        if there is None:
            try:
                await self.client.create(TENSORBOARDS, body, space)
            except NotFound:
                why = (
                    "spec.tensorboard: the kind Tensorboard is not served here; install it: "
                    "lockstep manifests crds --dialect kubeflow | kubectl apply --server-side -f -"
                )
                self.recorder.event(job, "Warning", "NoTensorboard", why)
        elif not ours:
            why = f"spec.tensorboard: a Tensorboard {name} is there already and not the job's"
            self.recorder.event(job, "Warning", "NoTensorboard", f"{why}; delete or rename it")
        elif there.spec.logspath != job.spec.tensorboard:
            await self.client.patch(TENSORBOARDS, name, {"spec": body["spec"]}, space)


def board_of(job: TrainingJob) -> dict[str, Any]:
    """Return the Tensorboard of *job*: in its queue, and gone with it."""
    about = job.metadata
    owner = {
        "apiVersion": TRAINING_JOBS.api_version,
        "kind": TRAINING_JOBS.kind,
        "name": about.name,
        "uid": about.uid,
        "controller": True,
    }
    return {
        "metadata": {
            "name": about.name + SUFFIX,
            "labels": {JOB_LABEL: about.name, QUEUE_LABEL: job.spec.queue},
            "ownerReferences": [owner],
        },
        "spec": {"logspath": job.spec.tensorboard},
    }


def add_job_boards(manager: Manager, boards: Informer[Tensorboard]) -> None:
    """Keep the Tensorboards of jobs while *manager* leads."""
    jobs = manager.informer(TRAINING_JOBS)
    shell = JobBoards(manager.client, jobs, boards, manager.recorder())
    controller = Controller("job-tensorboard", shell.reconcile)
    controller.follow(jobs)
    controller.follow(boards, _job_of)
    manager.add(controller)


def _job_of(board: Tensorboard) -> Iterable[Key]:
    meta = board.metadata
    job = meta.labels.get(JOB_LABEL)
    return [(meta.namespace, job)] if job and meta.name == job + SUFFIX else []


def _owned(board: Tensorboard, job: TrainingJob) -> bool:
    return any(one.uid == job.metadata.uid for one in board.metadata.owner_references)
