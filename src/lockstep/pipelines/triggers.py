"""What makes runs and workflows: by cron, by an interval, by a new version of model or dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.api.pipeline_trigger import PIPELINE_TRIGGERS, PipelineTrigger
from lockstep.compat.argo.objects import CRON_WORKFLOWS, WORKFLOWS
from lockstep.compat.kfp.kinds import SCHEDULED_WORKFLOWS
from lockstep.pipelines.core import calendar, recurring, triggers
from lockstep.pipelines.core.makers import Wish
from lockstep.pipelines.makers import add_maker
from lockstep.runtime.controller import Key
from lockstep.runtime.manager import Manager

_SOURCE: Final = "source"
"""Triggers by what they wait for, and that by its own name: KIND/NAMESPACE/NAME."""


def add_cron_workflows(manager: Manager) -> None:
    """Make the workflows of CronWorkflows while *manager* leads."""
    crons = manager.informer(CRON_WORKFLOWS, optional=True)
    workflows = manager.informer(WORKFLOWS, optional=True)
    add_maker(manager, "cron-workflow", crons, workflows, calendar.wish)


def add_recurring_runs(manager: Manager) -> None:
    """Make the runs of recurring runs while *manager* leads."""
    sources = manager.informer(SCHEDULED_WORKFLOWS, optional=True)
    runs = manager.informer(PIPELINE_RUNS)
    add_maker(manager, "recurring-run", sources, runs, recurring.wish)


def add_triggers(manager: Manager) -> None:
    """Make the runs of triggers while *manager* leads."""
    known = manager.informer(PIPELINE_TRIGGERS, indices={_SOURCE: _waits_for})
    runs = manager.informer(PIPELINE_RUNS)
    versions = manager.informer(MODEL_VERSIONS, indices={_SOURCE: _model})
    caches = manager.informer(DATASET_CACHES, indices={_SOURCE: _dataset})

    def decide(trigger: PipelineTrigger, made: Sequence[Any], now: float) -> Wish:
        space = trigger.metadata.namespace
        events = triggers.events(
            trigger,
            [one for at in _waits_for(trigger) for one in versions.by_index(_SOURCE, at)],
            [one for at in _waits_for(trigger) for one in caches.by_index(_SOURCE, at)],
            lambda name: runs.get(space, name),
        )
        return triggers.wish(trigger, events, made, now)

    controller = add_maker(manager, "pipeline-trigger", known, runs, decide)

    def concerned(index: Callable[[Any], Iterable[str]]) -> Callable[[Any], Iterable[Key]]:
        def keys(one: Any) -> Iterable[Key]:
            found = [t for at in index(one) for t in known.by_index(_SOURCE, at)]
            return [(t.metadata.namespace, t.metadata.name) for t in found]

        return keys

    controller.follow(versions, concerned(_model))
    controller.follow(caches, concerned(_dataset))


def _waits_for(trigger: PipelineTrigger) -> Iterable[str]:
    space, spec = trigger.metadata.namespace, trigger.spec
    if spec.model_version is not None:
        yield f"ModelVersion/{space}/{spec.model_version.model}"
    if spec.dataset:
        yield f"Dataset/{space}/{spec.dataset}"


def _model(one: Any) -> Iterable[str]:
    return [f"ModelVersion/{one.metadata.namespace}/{one.spec.model}"]


def _dataset(one: Any) -> Iterable[str]:
    return [f"Dataset/{one.metadata.namespace}/{one.spec.dataset}"]
