"""The controllers of runs and workflows, put under a manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lockstep.api.core import CONFIG_MAPS, PODS
from lockstep.api.pipeline import KEPT_LABEL, PIPELINE_RUNS, RUN_LABEL
from lockstep.api.resource import Resource
from lockstep.kube.cache import Change
from lockstep.kube.informer import Informer
from lockstep.pipelines.controller import RUN_INDEX, PipelineController
from lockstep.pipelines.core.objects import KINDS
from lockstep.pipelines.memory import Memory
from lockstep.pipelines.triggers import add_cron_workflows, add_recurring_runs, add_triggers
from lockstep.pipelines.workflows import add_workflows
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager


def add_pipelines(manager: Manager, artefacts: Path | None = None) -> None:
    """Run the controllers of runs and workflows while *manager* leads.

    *artefacts* is the directory of artefacts of runs that name no store, if there is one.
    """
    runs = manager.informer(PIPELINE_RUNS)
    index = {RUN_INDEX: _run_of}
    pods = manager.informer(PODS, label_selector=RUN_LABEL, indices=index)
    made = {
        one.resource: manager.informer(
            one.resource, label_selector=RUN_LABEL, indices=index, optional=True
        )
        for one in KINDS
        if one.watched
    }
    kept = manager.informer(CONFIG_MAPS, label_selector=f"{KEPT_LABEL}=true")
    memory = Memory(manager.client, kept)
    shell = PipelineController(
        manager.client, runs, pods, made, memory, manager.recorder(), artefacts=artefacts
    )
    controller = Controller("pipeline-run", shell.reconcile, workers=8)
    controller.follow(runs)
    followed: list[tuple[Resource[Any], Informer[Any]]] = [(PODS, pods), *made.items()]
    for resource, informer in followed:
        informer.subscribe(_noting(shell, resource))
        controller.follow(informer, _keys)
    manager.add(controller)
    add_workflows(manager)
    add_cron_workflows(manager)
    add_recurring_runs(manager)
    add_triggers(manager)


def _noting(shell: PipelineController, resource: Resource[Any]) -> Callable[[Change[Any]], None]:
    def note(change: Change[Any]) -> None:
        for key in _keys(change.object):
            shell.note(resource, change, key)

    return note


def _run_of(obj: Any) -> Iterable[str]:
    name = obj.metadata.labels.get(RUN_LABEL)
    return [f"{obj.metadata.namespace}/{name}"] if name else []


def _keys(obj: Any) -> Iterable[Key]:
    name = obj.metadata.labels.get(RUN_LABEL)
    return [(obj.metadata.namespace, name)] if name else []
