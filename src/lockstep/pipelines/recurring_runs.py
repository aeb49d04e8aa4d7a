"""The controller of recurring runs: PipelineRuns made when their time has come."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import AnyObject
from lockstep.api.merge import difference
from lockstep.api.pipeline import PIPELINE_RUNS, PipelineRun
from lockstep.compat.kfp.kinds import SCHEDULED_WORKFLOWS
from lockstep.kube.client import Client
from lockstep.kube.controller import Controller, Key
from lockstep.kube.errors import AlreadyExists
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager
from lockstep.pipelines.core.recurring import RECURRING_LABEL, wish

_INDEX: Final = "recurring-run"
_LONGEST: Final = 3600.0
"""Seconds after which it is looked again in any case: clocks are set."""


@dataclass
class RecurringController:
    """Makes the runs of each recurring run."""

    client: Client
    recurring: Informer[AnyObject]
    runs: Informer[PipelineRun]
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Do what the recurring run at *key* wants now; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        obj = self.recurring.get(*key)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            return None
        found = wish(obj, self.runs.by_index(_INDEX, "/".join(key)), self.clock())
        if found.make is not None:
            with contextlib.suppress(AlreadyExists):
                await self.client.create(PIPELINE_RUNS, found.make, key[0])
        if patch := difference(obj.status, found.status):
            await self.client.patch(
                SCHEDULED_WORKFLOWS, key[1], {"status": patch}, key[0], subresource="status"
            )
        return None if found.again is None else min(_LONGEST, found.again)


def add_recurring_runs(manager: Manager) -> None:
    """Run the controller of recurring runs while *manager* leads."""
    recurring = manager.informer(SCHEDULED_WORKFLOWS)
    recurring.optional = True
    runs = manager.informer(PIPELINE_RUNS, indices={_INDEX: _recurring_of})
    shell = RecurringController(manager.client, recurring, runs)
    controller = Controller("recurring-run", shell.reconcile, workers=2)
    controller.follow(recurring)
    controller.follow(runs, _keys)
    manager.add(controller)


def _recurring_of(run: Any) -> Iterable[str]:
    name = run.metadata.labels.get(RECURRING_LABEL)
    return [f"{run.metadata.namespace}/{name}"] if name else []


def _keys(run: Any) -> Iterable[Key]:
    name = run.metadata.labels.get(RECURRING_LABEL)
    return [(run.metadata.namespace, name)] if name else []
