"""The controller of training jobs, put under a manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lockstep.api.core import (
    CONFIG_MAPS,
    LEASES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICES,
    Lease,
    Node,
    Pod,
)
from lockstep.api.gang import GANGS
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import JOB_LABEL
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.training import TRAINING_JOBS
from lockstep.health.core.lifecycle import is_lost
from lockstep.jobs import awaited
from lockstep.jobs.controller import Caches, JobController
from lockstep.jobs.leaving_nodes import notice_of
from lockstep.jobs.metrics import RankMetrics
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager

NODE_INDEX: Final = "lockstep.dev/node"


def add_jobs(manager: Manager) -> None:
    """Run the controller of training jobs while *manager* leads."""
    jobs = manager.informer(TRAINING_JOBS, indices=awaited.INDICES)
    of_pods = {JOB_LABEL: _job_of, NODE_INDEX: _node_of}
    pods = manager.informer(PODS, label_selector=JOB_LABEL, indices=of_pods)
    nodes = manager.informer(NODES)
    leases = manager.informer(LEASES, label_selector=JOB_LABEL, indices={JOB_LABEL: _job_of})
    others = {
        res: manager.informer(res, label_selector=JOB_LABEL)
        for res in (GANGS, SERVICES, CONFIG_MAPS, ROLES, ROLE_BINDINGS)
    }
    manager.metrics.registry.register(RankMetrics(jobs, leases))
    caches = Caches(jobs, pods, leases, manager.informer(NODE_HEALTHS), nodes, others)
    shell = JobController(manager.writer(), caches)
    controller = Controller("trainingjob", shell.reconcile, workers=4)
    controller.follow(jobs)
    controller.follow(jobs, lambda job: awaited.waiting_for(jobs, job))
    followed: list[Informer[Any]] = [pods, leases, *others.values()]
    for informer in followed:
        controller.follow(informer, lambda obj: _job_key(obj.metadata))

    def on_lost(node: Node) -> Iterable[Key]:
        leaves = is_lost(node) or notice_of(node)
        there = pods.by_index(NODE_INDEX, node.metadata.name) if leaves else ()
        return [key for pod in there for key in _job_key(pod.metadata)]

    controller.follow(nodes, on_lost)
    manager.add(controller)


def _node_of(pod: Pod) -> Iterable[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []


def _job_of(obj: Pod | Lease) -> Iterable[str]:
    return [f"{obj.metadata.namespace}/{obj.metadata.labels[JOB_LABEL]}"]


def _job_key(meta: ObjectMeta) -> Iterable[Key]:
    return [(meta.namespace, meta.labels[JOB_LABEL])]
