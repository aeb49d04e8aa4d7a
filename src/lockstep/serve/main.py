"""The controller of inference services, put under a manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, SERVICES, AnyObject
from lockstep.api.device_usage import DEVICE_USAGES
from lockstep.api.gang import GANGS
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES, Router
from lockstep.compat.kserve import llm
from lockstep.compat.kserve.objects import (
    ANALYSIS_TEMPLATES,
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_SERVICES,
    SERVING_RUNTIMES,
    InferenceService,
    ServingRuntime,
)
from lockstep.compat.leaderworkerset.kinds import LEADER_WORKER_SETS
from lockstep.compat.leaderworkerset.translate import services as leader_worker_sets
from lockstep.kube.controller import Controller, Key
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager
from lockstep.serve.composition_controller import CompositionController
from lockstep.serve.controller import ServingController
from lockstep.serve.graph_controller import GraphController
from lockstep.serve.readings import Readings


def add_serving(manager: Manager) -> None:
    """Run the controller of inference services while *manager* leads."""
    services = manager.informer(INFERENCE_SERVICES)
    labelled = {
        res: manager.informer(res, label_selector=ROUTE_LABEL, indices={ROUTE_LABEL: _route_of})
        for res in (PODS, CONTROLLER_REVISIONS, SERVICES, GANGS)
    }
    routes, routers = manager.informer(ROUTES), manager.informer(ROUTERS)
    runtimes = {res: manager.informer(res) for res in (SERVING_RUNTIMES, CLUSTER_SERVING_RUNTIMES)}
    graphs = manager.informer(INFERENCE_GRAPHS)
    templates = manager.informer(ANALYSIS_TEMPLATES)
    services.optional = graphs.optional = templates.optional = True
    for runtime in runtimes.values():
        runtime.optional = True
    caches: dict[Resource[Any], Informer[Any]] = {
        INFERENCE_SERVICES: services,
        ANALYSIS_TEMPLATES: templates,
        INFERENCE_GRAPHS: graphs,
        ROUTES: routes,
        ROUTERS: routers,
        **labelled,
        **runtimes,
    }
    devices = manager.informer(DEVICE_USAGES)
    readings = Readings(devices)
    shell = ServingController(manager.client, caches, manager.recorder(), readings)

    def everyone(_: ServingRuntime) -> Iterable[Key]:
        return [(one.metadata.namespace, one.metadata.name) for one in services]

    def reported(router: Router) -> Iterable[Key]:
        if not router.status.renewed_at:
            return everyone(ServingRuntime(metadata=router.metadata))
        keys = (name.partition("/") for name in router.status.routes)
        return [(namespace, _service(namespace, name)) for namespace, _, name in keys]

    def _service(namespace: str, route: str) -> str:
        """Return the service of a route, which may be that of the predictor alone."""
        name = route.removesuffix("-predictor")
        return name if services.get(namespace, name) is not None else route

    controller = Controller("inferenceservice", shell.reconcile, workers=4)
    controller.follow(services)
    controller.follow(
        templates, lambda one: [k for k in _keys(services) if k[0] == one.metadata.namespace]
    )
    controller.follow(routes, _key)
    controller.follow(routers, reported)
    for informer in labelled.values():
        controller.follow(informer, _key)
    for informer in runtimes.values():
        controller.follow(informer, everyone)
    manager.add(controller)
    _add_graphs(manager, caches)
    for resource, translate in COMPOSED:
        _add_composed(manager, caches, resource, translate)


COMPOSED: Final = (
    (LLM_SERVICES, llm.services),
    (LEADER_WORKER_SETS, leader_worker_sets),
)
"""Kinds whose objects become InferenceServices, and how."""


def _add_composed(
    manager: Manager,
    caches: dict[Resource[Any], Informer[Any]],
    resource: Resource[AnyObject],
    translate: Callable[[AnyObject], list[dict[str, Any]]],
) -> None:
    """Run the controller of a kind whose objects become InferenceServices."""
    objects = manager.informer(resource)
    objects.optional = True
    shell = CompositionController(
        manager.client, resource, translate, {**caches, resource: objects}
    )

    def parents(child: InferenceService) -> Iterable[Key]:
        meta = child.metadata
        return [
            (meta.namespace, one.name) for one in meta.owner_references if one.kind == resource.kind
        ]

    controller = Controller(resource.kind.lower(), shell.reconcile)
    controller.follow(objects)
    controller.follow(caches[INFERENCE_SERVICES], parents)
    controller.follow(caches[PODS], _key)
    manager.add(controller)


def _add_graphs(manager: Manager, caches: dict[Resource[Any], Informer[Any]]) -> None:
    """Run the controller of InferenceGraphs."""
    graphs = caches[INFERENCE_GRAPHS]

    def every(_: Any) -> Iterable[Key]:
        return [(one.metadata.namespace, one.metadata.name) for one in graphs]

    def here(service: Any) -> Iterable[Key]:
        return [key for key in every(service) if key[0] == service.metadata.namespace]

    def began(router: Router) -> Iterable[Key]:
        return [] if router.status.renewed_at else every(router)

    shell = GraphController(manager.client, caches)
    controller = Controller("inferencegraph", shell.reconcile)
    controller.follow(graphs)
    controller.follow(caches[INFERENCE_SERVICES], here)
    controller.follow(caches[ROUTES])
    controller.follow(caches[ROUTERS], began)
    manager.add(controller)


def _keys(objects: Informer[Any]) -> list[Key]:
    return [(one.metadata.namespace, one.metadata.name) for one in objects]


def _route_of(obj: Any) -> Iterable[str]:
    return [f"{obj.metadata.namespace}/{obj.metadata.labels[ROUTE_LABEL]}"]


def _key(obj: Any) -> Iterable[Key]:
    meta = obj.metadata
    return [(meta.namespace, meta.labels.get(ROUTE_LABEL, meta.name))]
