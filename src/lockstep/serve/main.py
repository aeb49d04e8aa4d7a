"""The controller of inference services, put under a manager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, SERVICES, AnyObject
from lockstep.api.device_usage import DEVICE_USAGES
from lockstep.api.gang import GANGS
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.names import ROUTE_LABEL, SYSTEM_NAMESPACE
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES, Router
from lockstep.compat.fluid.objects import DATASETS, Dataset
from lockstep.compat.kserve import llm
from lockstep.compat.kserve.objects import (
    ANALYSIS_TEMPLATES,
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_CONFIGS,
    LLM_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    SERVING_RUNTIMES,
    InferenceService,
)
from lockstep.compat.leaderworkerset.kinds import LEADER_WORKER_SETS
from lockstep.compat.leaderworkerset.translate import services as leader_worker_sets
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Decision
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.runtime.reconciler import Reconciler
from lockstep.serve.composition_controller import CompositionController
from lockstep.serve.controller import ServingController
from lockstep.serve.core.graph_objects import decide_graph
from lockstep.serve.core.models import MODEL_LABEL
from lockstep.serve.graph_controller import GraphController
from lockstep.serve.local_model_controller import add_local_models
from lockstep.serve.pool_controller import add_inference_pools
from lockstep.serve.readings import Readings
from lockstep.serve.trained_controller import add_trained

LOCAL_MODELS: Final = (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES)
"""Kinds of models that are on their nodes before a service asks for them."""


def add_serving(manager: Manager, *, cached: bool = False) -> None:
    """Run the controller of inference services while *manager* leads.

    With *cached* models come as Datasets: the nodes' caches show them to pods.
    """
    caches = _caches(manager)
    devices = manager.informer(DEVICE_USAGES)
    readings = Readings(devices)
    shell = ServingController(manager.writer(), caches, readings, cached)
    controller = Controller("inferenceservice", shell.reconcile, workers=4)
    _follow(controller, caches)
    manager.add(controller)
    _add_graphs(manager, caches)
    add_local_models(manager, caches)
    add_trained(manager, caches)
    add_inference_pools(manager, caches)
    _add_language_models(manager, caches, cached=cached)
    sets = CompositionController(leader_worker_sets, caches)
    _add_composed(manager, caches, LEADER_WORKER_SETS, sets)


def _caches(manager: Manager) -> dict[Resource[Any], Informer[Any]]:
    """Return the informers of all that services depend on."""
    labelled = {
        res: manager.informer(res, label_selector=ROUTE_LABEL, indices={ROUTE_LABEL: _route_of})
        for res in (PODS, CONTROLLER_REVISIONS, SERVICES, GANGS)
    }
    of_kserve: tuple[Resource[Any], ...] = (
        *(INFERENCE_SERVICES, ANALYSIS_TEMPLATES, INFERENCE_GRAPHS),
        *(SERVING_RUNTIMES, CLUSTER_SERVING_RUNTIMES, *LOCAL_MODELS),
    )
    own: tuple[Resource[Any], ...] = (ROUTES, ROUTERS, MODEL_VERSIONS)
    return {
        DATASETS: manager.informer(DATASETS, indices={MODEL_LABEL: _models_in}, optional=True),
        **{res: manager.informer(res, optional=True) for res in of_kserve},
        **{res: manager.informer(res) for res in own},
        **labelled,
    }


def _follow(controller: Controller, caches: Mapping[Resource[Any], Informer[Any]]) -> None:
    """Have a service looked at when something changes that it depends on."""
    services = caches[INFERENCE_SERVICES]

    def reported(router: Router) -> Iterable[Key]:
        if not router.status.renewed_at:
            return services.all_keys()
        keys = (name.partition("/") for name in router.status.routes)
        return [(namespace, _service(namespace, name)) for namespace, _, name in keys]

    def _service(namespace: str, route: str) -> str:
        """Return the service of a route, which may be that of the predictor alone."""
        name = route.removesuffix("-predictor")
        return name if services.get(namespace, name) is not None else route

    def beside(one: AnyObject) -> list[Key]:
        return [key for key in services.all_keys() if key[0] == one.metadata.namespace]

    controller.follow(services)
    controller.follow(caches[ANALYSIS_TEMPLATES], beside)
    controller.follow(caches[MODEL_VERSIONS], beside)
    controller.follow(caches[ROUTERS], reported)
    controller.follow(caches[DATASETS], _owners)
    of_service: tuple[Resource[Any], ...] = (ROUTES, PODS, CONTROLLER_REVISIONS, SERVICES, GANGS)
    for res in of_service:
        controller.follow(caches[res], _key)
    controller.follow(caches[SERVING_RUNTIMES], services.all_keys)
    controller.follow(caches[CLUSTER_SERVING_RUNTIMES], services.all_keys)


def _add_language_models(
    manager: Manager, caches: dict[Resource[Any], Informer[Any]], *, cached: bool
) -> None:
    """Make InferenceServices of LLMInferenceServices."""
    configs = manager.informer(LLM_CONFIGS, optional=True)

    def of(obj: AnyObject) -> llm.Configs:
        def config(name: str) -> AnyObject | None:
            return configs.get(obj.metadata.namespace, name) or configs.get(SYSTEM_NAMESPACE, name)

        return config

    def language(obj: AnyObject) -> list[dict[str, Any]]:
        return llm.services(obj, cached=cached, configs=of(obj))

    made = CompositionController(language, caches, lambda obj: llm.ignored(obj, of(obj)))
    _add_composed(manager, caches, LLM_SERVICES, made, configs)


def _add_composed(
    manager: Manager,
    caches: dict[Resource[Any], Informer[Any]],
    resource: Resource[AnyObject],
    made: CompositionController,
    configs: Informer[AnyObject] | None = None,
) -> None:
    """Run the controller of a kind whose objects become InferenceServices.

    All of them are looked at again when one of *configs* changes.
    """
    objects = manager.informer(resource, optional=True)
    shell = Reconciler(objects, made.see, made.decide, manager.writer())

    def parents(child: InferenceService) -> Iterable[Key]:
        meta = child.metadata
        return [
            (meta.namespace, one.name) for one in meta.owner_references if one.kind == resource.kind
        ]

    controller = Controller(resource.kind.lower(), shell.reconcile)
    controller.follow(objects)
    controller.follow(caches[INFERENCE_SERVICES], parents)
    controller.follow(caches[PODS], _key)
    if configs is not None:
        controller.follow(configs, objects.all_keys)
    manager.add(controller)


def _add_graphs(manager: Manager, caches: dict[Resource[Any], Informer[Any]]) -> None:
    """Run the controller of InferenceGraphs."""
    graphs = caches[INFERENCE_GRAPHS]

    def here(service: Any) -> Iterable[Key]:
        return [key for key in graphs.all_keys() if key[0] == service.metadata.namespace]

    def began(router: Router) -> Iterable[Key]:
        return [] if router.status.renewed_at else graphs.all_keys()

    see = GraphController(caches).see
    shell = Reconciler(
        graphs, see, lambda *known: Decision(*decide_graph(*known)), manager.writer()
    )
    controller = Controller("inferencegraph", shell.reconcile)
    controller.follow(graphs)
    controller.follow(caches[INFERENCE_SERVICES], here)
    controller.follow(caches[ROUTES])
    controller.follow(caches[ROUTERS], began)
    manager.add(controller)


def _models_in(dataset: Dataset) -> list[str]:
    """Return the namespace of a Dataset that was made for services."""
    return [dataset.metadata.namespace] if MODEL_LABEL in dataset.metadata.labels else []


def _owners(obj: Any) -> list[Key]:
    """Return the services for which *obj* was made."""
    meta = obj.metadata
    owners = meta.owner_references
    return [(meta.namespace, one.name) for one in owners if one.kind == INFERENCE_SERVICES.kind]


def _route_of(obj: Any) -> Iterable[str]:
    return [f"{obj.metadata.namespace}/{obj.metadata.labels[ROUTE_LABEL]}"]


def _key(obj: Any) -> Iterable[Key]:
    meta = obj.metadata
    return [(meta.namespace, meta.labels.get(ROUTE_LABEL, meta.name))]
