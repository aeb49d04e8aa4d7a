"""The controllers of workloads, put under a manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from lockstep.api.core import CONTROLLER_REVISIONS, NODES, PODS, AnyObject
from lockstep.api.meta import controller_of
from lockstep.api.resource import Resource
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key, controlled_by
from lockstep.runtime.manager import Manager
from lockstep.runtime.reconciler import Writer
from lockstep.workloads.controller import BY_OWNER, BY_SPACE, WorkloadController, owners, spaces
from lockstep.workloads.core import (
    cron_jobs,
    daemon_sets,
    deployments,
    jobs,
    replica_sets,
    stateful_sets,
)
from lockstep.workloads.core.plan import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
)


def add_workloads(manager: Manager) -> None:
    """Serve workloads while *manager* leads, where no kube-controller-manager does.

    Of Jobs those whose pods follow one another: the others are served with other systems' jobs.
    """
    add = partial(_add, manager, manager.writer())
    add(REPLICA_SETS, replica_sets.decide, (PODS,), claims=PODS)
    add(DEPLOYMENTS, deployments.decide, (REPLICA_SETS,), claims=REPLICA_SETS)
    add(
        STATEFUL_SETS,
        stateful_sets.decide,
        (PODS, CONTROLLER_REVISIONS),
        claims=PODS,
        refused=stateful_sets.refused,
    )
    add(
        DAEMON_SETS,
        daemon_sets.decide,
        (PODS, CONTROLLER_REVISIONS, NODES),
        claims=PODS,
        refused=daemon_sets.refused,
    )
    add(CRON_JOBS, cron_jobs.decide, (JOBS,))
    add(JOBS, jobs.decide, (PODS,))


def _add(
    manager: Manager,
    writer: Writer,
    resource: Resource[AnyObject],
    decide: Callable[..., Any],
    children: Iterable[Resource[Any]],
    *,
    claims: Resource[Any] | None = None,
    refused: Callable[[AnyObject], str] = lambda _: "",
) -> None:
    """Serve one kind, whose objects have *children*; *claims* are those that take up orphans."""
    caches: dict[Resource[Any], Informer[Any]] = {
        res: manager.informer(res, indices={BY_OWNER: owners, BY_SPACE: spaces})
        for res in children
        if res is not NODES
    }
    nodes = manager.informer(NODES) if NODES in children else None
    objects = manager.informer(resource)
    shell = WorkloadController(
        writer,
        resource,
        decide,
        objects,
        caches if nodes is None else {**caches, NODES: nodes},
        claims,
        refused,
    )
    controller = Controller(resource.kind.lower(), shell.reconcile)
    controller.follow(objects)
    for cache in caches.values():
        controller.follow(cache, controlled_by(resource))
    if claims is not None:
        controller.follow(caches[claims], _orphans(objects))
    if nodes is not None:
        controller.follow(nodes, objects.all_keys)
    manager.add(controller)


def _orphans(objects: Informer[AnyObject]) -> Callable[[Any], Iterable[Key]]:
    """Return a function that names all *objects* beside one that no controller has."""

    def keys(obj: Any) -> Iterable[Key]:
        if controller_of(obj.metadata) is not None or not obj.metadata.labels:
            return ()
        space = obj.metadata.namespace
        return [(space, one.metadata.name) for one in objects if one.metadata.namespace == space]

    return keys
