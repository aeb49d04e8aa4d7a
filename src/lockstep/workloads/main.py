"""The controllers of workloads, put under a manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lockstep.api.core import CONTROLLER_REVISIONS, NODES, PODS, AnyObject
from lockstep.api.meta import controller_of
from lockstep.api.resource import Resource
from lockstep.kube.controller import Controller, Key
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager
from lockstep.workloads.controller import BY_OWNER, BY_SPACE, WorkloadController, owners, spaces
from lockstep.workloads.core import (
    cron_jobs,
    daemon_sets,
    deployments,
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

    Jobs are served with other systems' jobs.
    """
    recorder = manager.recorder()

    def add(
        resource: Resource[AnyObject],
        decide: Callable[..., Any],
        children: Iterable[Resource[Any]],
        claims: Resource[Any] | None = None,
        refused: Callable[[AnyObject], str] = lambda _: "",
    ) -> None:
        caches: dict[Resource[Any], Informer[Any]] = {
            res: manager.informer(res, indices={BY_OWNER: owners, BY_SPACE: spaces})
            for res in children
            if res is not NODES
        }
        nodes = manager.informer(NODES) if NODES in children else None
        objects = manager.informer(resource)
        shell = WorkloadController(
            manager.client,
            resource,
            decide,
            objects,
            caches if nodes is None else {**caches, NODES: nodes},
            recorder,
            claims,
            refused,
        )
        controller = Controller(resource.kind.lower(), shell.reconcile)
        controller.follow(objects)
        for cache in caches.values():
            controller.follow(cache, _owned_by(resource))
        if claims is not None:
            controller.follow(caches[claims], _orphans(objects))
        if nodes is not None:
            controller.follow(nodes, _all_of(objects))
        manager.add(controller)

    add(REPLICA_SETS, replica_sets.decide, (PODS,), PODS)
    add(DEPLOYMENTS, deployments.decide, (REPLICA_SETS,), REPLICA_SETS)
    add(
        STATEFUL_SETS,
        stateful_sets.decide,
        (PODS, CONTROLLER_REVISIONS),
        PODS,
        stateful_sets.refused,
    )
    add(
        DAEMON_SETS,
        daemon_sets.decide,
        (PODS, CONTROLLER_REVISIONS, NODES),
        PODS,
        daemon_sets.refused,
    )
    add(CRON_JOBS, cron_jobs.decide, (JOBS,))


def _owned_by(resource: Resource[AnyObject]) -> Callable[[Any], Iterable[Key]]:
    """Return a function that tells which object of *resource* controls one."""

    def keys(obj: Any) -> Iterable[Key]:
        found = controller_of(obj.metadata)
        if found is None or found.kind != resource.kind:
            return ()
        if found.api_version != resource.api_version:
            return ()
        return ((obj.metadata.namespace, found.name),)

    return keys


def _orphans(objects: Informer[AnyObject]) -> Callable[[Any], Iterable[Key]]:
    """Return a function that names all *objects* beside one that no controller has."""

    def keys(obj: Any) -> Iterable[Key]:
        if controller_of(obj.metadata) is not None or not obj.metadata.labels:
            return ()
        space = obj.metadata.namespace
        return [(space, one.metadata.name) for one in objects if one.metadata.namespace == space]

    return keys


def _all_of(objects: Informer[AnyObject]) -> Callable[[Any], Iterable[Key]]:
    """Return a function that names all *objects*."""
    return lambda _: [(one.metadata.namespace, one.metadata.name) for one in objects]
