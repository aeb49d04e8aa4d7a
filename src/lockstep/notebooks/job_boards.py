"""The TensorBoard of a job that says where its events go: it comes with the job's first start.

*Example:* a job ``llm`` with ``spec.tensorboard: pvc://results/llm`` gets the Tensorboard
``llm-tensorboard``, which ends with the job and sleeps while its page is not open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.meta import owned_by, owner_reference
from lockstep.api.names import JOB_LABEL, QUEUE_LABEL
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.compat.kubeflow.tensorboard import TENSORBOARDS, Tensorboard
from lockstep.kube.errors import NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Action, Change, Create, Delete, Note
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.execution import execute
from lockstep.runtime.manager import Manager
from lockstep.runtime.reconciler import Writer
from lockstep.runtime.refusals import RETRY_REFUSED

SUFFIX: Final = "-tensorboard"
NOT_SERVED: Final = (
    "spec.tensorboard: the kind Tensorboard is not served here; install it: "
    "lockstep manifests crds --dialect kubeflow | kubectl apply --server-side -f -"
)


@dataclass
class JobBoards:
    """Keeps the Tensorboard of each job that names one."""

    writer: Writer
    jobs: Informer[TrainingJob]
    boards: Informer[Tensorboard]

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
        wanted = job.spec.tensorboard and job.status.start_time is not None
        body = board_of(job)
        actions: list[Action] = []
        if there is None:
            actions = [Create(TENSORBOARDS, body)] if wanted else []
        elif not owned_by(there, job):
            if wanted:
                why = f"spec.tensorboard: a Tensorboard {name} is there already and not the job's"
                self._refuse(job, f"{why}; delete or rename it")
        elif not job.spec.tensorboard:
            actions = [Delete.of(TENSORBOARDS, there.metadata)]
        elif wanted and there.spec.logspath != job.spec.tensorboard:
            actions = [Change.of(TENSORBOARDS, there.metadata, {"spec": body["spec"]})]
        for action in actions:
            refusal = await execute(self.writer.client, action, space)
            if refusal is not None and isinstance(refusal.error, NotFound):
                self._refuse(job, NOT_SERVED)
            elif refusal is not None:
                self._refuse(job, str(refusal))
                return RETRY_REFUSED
        return None

    def _refuse(self, job: TrainingJob, why: str) -> None:
        self.writer.tell(TRAINING_JOBS, job, Note("NoTensorboard", why, warning=True))


def board_of(job: TrainingJob) -> dict[str, Any]:
    """Return the Tensorboard of *job*: in its queue, and gone with it."""
    about = job.metadata
    owner = owner_reference(job, TRAINING_JOBS)
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
    shell = JobBoards(manager.writer(), jobs, boards)
    controller = Controller("job-tensorboard", shell.reconcile)
    controller.follow(jobs)
    controller.follow(boards, _job_of)
    manager.add(controller)


def _job_of(board: Tensorboard) -> Iterable[Key]:
    meta = board.metadata
    job = meta.labels.get(JOB_LABEL)
    return [(meta.namespace, job)] if job and meta.name == job + SUFFIX else []
