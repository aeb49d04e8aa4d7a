"""The controller of training jobs, put under a manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.api.core import (
    CONFIG_MAPS,
    LEASES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICES,
    Lease,
    Pod,
)
from lockstep.api.gang import GANGS
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import JOB_LABEL
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.training import TRAINING_JOBS
from lockstep.jobs.controller import Caches, JobController
from lockstep.kube.controller import Controller, Key
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager


def add_jobs(manager: Manager) -> None:
    """Run the controller of training jobs while *manager* leads."""
    jobs = manager.informer(TRAINING_JOBS)
    pods = manager.informer(PODS, label_selector=JOB_LABEL, indices={JOB_LABEL: _job_of})
    leases = manager.informer(LEASES, label_selector=JOB_LABEL, indices={JOB_LABEL: _job_of})
    others = {
        res: manager.informer(res, label_selector=JOB_LABEL)
        for res in (GANGS, SERVICES, CONFIG_MAPS, ROLES, ROLE_BINDINGS)
    }
    caches = Caches(jobs, pods, leases, manager.informer(NODE_HEALTHS), others)
    shell = JobController(manager.client, caches, manager.recorder())
    controller = Controller("trainingjob", shell.reconcile, workers=4)
    controller.follow(jobs)
    followed: list[Informer[Any]] = [pods, leases, *others.values()]
    for informer in followed:
        controller.follow(informer, lambda obj: _job_key(obj.metadata))
    manager.add(controller)


def _job_of(obj: Pod | Lease) -> Iterable[str]:
    return [f"{obj.metadata.namespace}/{obj.metadata.labels[JOB_LABEL]}"]


def _job_key(meta: ObjectMeta) -> Iterable[Key]:
    return [(meta.namespace, meta.labels[JOB_LABEL])]
