"""All kinds of other systems that become jobs or queues of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from lockstep.api.core import AnyObject
from lockstep.compat import podgroups, tiers
from lockstep.compat.etoperator import job as et
from lockstep.compat.etoperator import status as et_status
from lockstep.compat.etoperator.kinds import JOB as ET_JOB
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.jobset import status as jobset_status
from lockstep.compat.jobset import translate as jobset
from lockstep.compat.jobset.kinds import JOBSET
from lockstep.compat.jupyter import kinds as jupyter_kinds
from lockstep.compat.jupyter import translate as jupyter
from lockstep.compat.kai import queue as kai
from lockstep.compat.kai.kinds import QUEUE as KAI_QUEUE
from lockstep.compat.kubeflow import jobs as kubeflow_jobs
from lockstep.compat.kubeflow import kinds as kubeflow_kinds
from lockstep.compat.kubeflow import others, pytorch, workspace
from lockstep.compat.kubeflow import status as kubeflow_status
from lockstep.compat.kubernetes import job as batch
from lockstep.compat.kubernetes import status as batch_status
from lockstep.compat.kueue import kinds as kueue_kinds
from lockstep.compat.kueue import translate as kueue
from lockstep.compat.pods import local_queue
from lockstep.compat.scheduling import podgroup
from lockstep.compat.scheduling.kinds import PODGROUP
from lockstep.compat.trainer import kinds as trainer_kinds
from lockstep.compat.trainer import status as trainer_status
from lockstep.compat.trainer import translate as trainer
from lockstep.compat.translation import Source, Translation, managed_by
from lockstep.compat.volcano import flow, job, queue, status
from lockstep.compat.volcano import kinds as volcano_kinds

BATCH_JOB: Final = ForeignKind("batch", "v1", "Job", "jobs")


def _kubeflow(kind: ForeignKind, translate: Callable[[AnyObject], Translation]) -> Source:
    told, ended = kubeflow_status.status_of, kubeflow_status.ended
    return Source(kind, translate, told, ended=ended, manager=kubeflow_jobs.manager)


def _group(kind: ForeignKind, translate: Callable[..., Translation], told: Any) -> Source:
    return Source(kind, translate, told, reads=(tiers.TOPOLOGY,))


def _jobs() -> Iterable[Source]:
    yield Source(ET_JOB, et.to_native, et_status.status_of, ended=et_status.ended)
    yield Source(
        JOBSET,
        jobset.to_native,
        jobset_status.status_of,
        ended=jobset_status.ended,
        manager=managed_by(jobset.MANAGER),
    )
    yield Source(
        BATCH_JOB,
        batch.to_native,
        batch_status.status_of,
        ended=batch_status.ended,
        manager=batch.manager,
        built_in=True,
    )
    yield _kubeflow(kubeflow_kinds.PYTORCH, pytorch.to_native)
    yield _kubeflow(kubeflow_kinds.TF, others.TF.to_native)
    yield _kubeflow(kubeflow_kinds.XGBOOST, others.XGBOOST.to_native)
    yield _kubeflow(kubeflow_kinds.PADDLE, others.PADDLE.to_native)
    yield _kubeflow(kubeflow_kinds.JAX, others.JAX.to_native)
    yield _kubeflow(kubeflow_kinds.MPI, others.MPI.to_native)
    yield Source(
        trainer_kinds.JOB,
        trainer.to_native,
        trainer_status.status_of,
        ended=trainer_status.ended,
        manager=managed_by(trainer.MANAGER),
        reads=(trainer_kinds.CLUSTER_RUNTIME, trainer_kinds.RUNTIME),
    )
    yield Source(volcano_kinds.JOB, job.to_native, status.status_of, ended=status.ended)
    yield Source(
        volcano_kinds.FLOW,
        flow.to_native,
        flow.status_of,
        ended=flow.ended,
        names=flow.names,
        drops=flow.drops,
        reads=(volcano_kinds.TEMPLATE,),
    )


def _queues() -> Iterable[Source]:
    told = kueue.status_of
    checks = (kueue_kinds.ADMISSION_CHECK,)
    yield Source(kueue_kinds.CLUSTER_QUEUE, kueue.cluster_queue, told, reads=checks)
    yield Source(kueue_kinds.COHORT, kueue.cohort, told)
    yield Source(kueue_kinds.FLAVOR, kueue.flavor, told)
    yield Source(kueue_kinds.LOCAL_QUEUE, kueue.local, told, native_name=local_queue)
    yield Source(kueue_kinds.PRIORITY, kueue.priority, kueue.priority_status)
    yield _group(kueue_kinds.TOPOLOGY, kueue.topology, told)
    yield Source(KAI_QUEUE, kai.to_native, kai.status_of)
    yield Source(volcano_kinds.QUEUE, queue.to_native, queue.status_of)


def _gangs() -> Iterable[Source]:
    told = podgroups.status_of
    yield Source(podgroups.COSCHEDULING, podgroups.coscheduling, told)
    yield Source(podgroups.VOLCANO, podgroups.volcano, told)
    yield _group(podgroups.KAI, podgroups.kai, told)
    yield _group(PODGROUP, podgroup.to_native, podgroup.status_of)


def _notebooks() -> Iterable[Source]:
    told = jupyter.status_of
    yield Source(jupyter_kinds.NOTEBOOK, jupyter.notebook, told)
    yield Source(jupyter_kinds.GATEWAY, jupyter.gateway, told)
    yield Source(
        jupyter_kinds.KERNEL_SPEC,
        jupyter.kernel_spec,
        told,
        reads=(jupyter_kinds.KERNEL_TEMPLATE, jupyter_kinds.GATEWAY),
    )
    yield Source(jupyter_kinds.KERNEL, jupyter.kernel, told)
    yield Source(
        kubeflow_kinds.WORKSPACE,
        workspace.to_native,
        workspace.status_of,
        reads=(kubeflow_kinds.WORKSPACE_KIND,),
    )


def sources() -> list[Source]:
    """Return every kind that is served."""
    return [*_jobs(), *_queues(), *_gangs(), *_notebooks()]
