"""The controllers of notebooks and kernels, put under a manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.api.core import PODS, SERVICES
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS, Environment
from lockstep.api.resource import Resource
from lockstep.compat.kubeflow.notebook import NAME_LABEL, NOTEBOOKS
from lockstep.compat.kubeflow.tensorboard import APP_LABEL, TENSORBOARDS
from lockstep.kube.informer import Informer
from lockstep.notebooks.core.kernel_pod import KERNEL_LABEL
from lockstep.notebooks.core.kernel_state import CACHE, KERNEL_IMAGE, Settings
from lockstep.notebooks.job_boards import add_job_boards
from lockstep.notebooks.kernel_controller import KernelController
from lockstep.notebooks.kind_ownership import KindOwnership
from lockstep.notebooks.master import Master
from lockstep.notebooks.notebook_controller import NotebookController
from lockstep.notebooks.tensorboard_controller import TensorboardController
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.runtime.own_image import own_image


def add_notebooks(manager: Manager, gateway: str = "", cache: str = "") -> None:
    """Run the controllers of notebooks and kernels while *manager* leads.

    *gateway* is the URL at which servers reach the gateway; without it all kernels are local.
    *cache* is the directory of each node in which packages are built.
    """
    settings = Settings(gateway, cache or CACHE, own_image() or KERNEL_IMAGE)
    master = Master(manager.client, make=True)
    notebooks = manager.informer(NOTEBOOKS, optional=True)
    servers = manager.informer(PODS, label_selector=NAME_LABEL)
    services = manager.informer(SERVICES, label_selector=NAME_LABEL)
    caches: dict[Resource[Any], Informer[Any]] = {
        NOTEBOOKS: notebooks,
        PODS: servers,
        SERVICES: services,
    }
    ownership = KindOwnership(manager.client, NOTEBOOKS)
    shell = NotebookController(manager.writer(), caches, master, settings, ownership)
    controller = Controller("notebook", shell.reconcile, workers=4)
    controller.follow(notebooks)
    controller.follow(servers, _of_notebook)
    controller.follow(services, _of_notebook)
    manager.add(controller)
    _add_kernels(manager, master, settings, notebooks)
    _add_tensorboards(manager, notebooks)


def _add_tensorboards(manager: Manager, notebooks: Informer[Any]) -> None:
    boards = manager.informer(TENSORBOARDS, optional=True)
    ownership = KindOwnership(manager.client, TENSORBOARDS)
    shell = TensorboardController(manager.writer(), boards, notebooks, ownership)
    controller = Controller("tensorboard", shell.reconcile)
    controller.follow(boards)
    controller.follow(notebooks, _of_tensorboard)
    manager.add(controller)
    add_job_boards(manager, boards)


def _of_tensorboard(obj: Any) -> Iterable[Key]:
    if APP_LABEL not in obj.metadata.labels:
        return []
    return [(obj.metadata.namespace, obj.metadata.name)]


def _add_kernels(
    manager: Manager, master: Master, settings: Settings, notebooks: Informer[Any]
) -> None:
    kernels = manager.informer(KERNELS)
    pods = manager.informer(PODS, label_selector=KERNEL_LABEL)
    environments = manager.informer(ENVIRONMENTS)
    caches: dict[Resource[Any], Informer[Any]] = {
        KERNELS: kernels,
        PODS: pods,
        ENVIRONMENTS: environments,
        NOTEBOOKS: notebooks,
    }
    shell = KernelController(manager.writer(), caches, master, settings)

    def users(environment: Environment) -> Iterable[Key]:
        about = environment.metadata
        return [
            (one.metadata.namespace, one.metadata.name)
            for one in kernels
            if one.metadata.namespace == about.namespace and one.spec.environment == about.name
        ]

    controller = Controller("kernel", shell.reconcile, workers=8)
    controller.follow(kernels)
    controller.follow(pods, _of_kernel)
    controller.follow(environments, users)
    manager.add(controller)


def _of_notebook(obj: Any) -> Iterable[Key]:
    return [(obj.metadata.namespace, obj.metadata.labels[NAME_LABEL])]


def _of_kernel(obj: Any) -> Iterable[Key]:
    return [(obj.metadata.namespace, obj.metadata.labels[KERNEL_LABEL])]
