"""The controller of Argo's CronWorkflows: workflows made when their time has come."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import AnyObject
from lockstep.api.merge import difference
from lockstep.compat.argo.objects import CRON_WORKFLOWS, WORKFLOWS
from lockstep.kube.client import Client
from lockstep.kube.controller import Controller, Key
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager
from lockstep.pipelines.core.calendar import CRON_LABEL, wish

log = logging.getLogger(__name__)

_INDEX: Final = "cron-workflow"
_LONGEST: Final = 3600.0
"""Seconds after which it is looked again in any case: clocks are set."""


@dataclass
class CronController:
    """Makes the workflows of each CronWorkflow, and deletes those that are over and too many."""

    client: Client
    crons: Informer[AnyObject]
    workflows: Informer[AnyObject]
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Do what the CronWorkflow at *key* wants now; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        cron = self.crons.get(*key)
        if cron is None or cron.metadata.deletion_timestamp is not None:
            return None
        now = self.clock()
        found = wish(cron, self.workflows.by_index(_INDEX, "/".join(key)), now)
        if found.make is not None:
            try:
                await self.client.create(WORKFLOWS, found.make, key[0])
            except AlreadyExists:
                log.debug("the workflow of %s is there already", key[1])
        for one in found.delete:
            try:
                meta = one.metadata
                await self.client.delete(
                    WORKFLOWS, meta.name, meta.namespace, uid=meta.uid, propagation="Background"
                )
            except NotFound:
                log.debug("workflow %s is gone already", one.metadata.name)
        if patch := difference(cron.status, {**cron.status, **found.status}):
            await self.client.patch(
                CRON_WORKFLOWS, key[1], {"status": patch}, key[0], subresource="status"
            )
        if found.again is None:
            return None
        return min(_LONGEST, max(0.01, found.again - self.clock()))


def add_cron_workflows(manager: Manager) -> None:
    """Run the controller of CronWorkflows while *manager* leads."""
    crons = manager.informer(CRON_WORKFLOWS)
    workflows = manager.informer(WORKFLOWS, indices={_INDEX: _cron_of})
    crons.optional = workflows.optional = True
    shell = CronController(manager.client, crons, workflows)
    controller = Controller("cron-workflow", shell.reconcile, workers=4)
    controller.follow(crons)
    controller.follow(workflows, _keys)
    manager.add(controller)


def _cron_of(workflow: Any) -> Iterable[str]:
    name = workflow.metadata.labels.get(CRON_LABEL)
    return [f"{workflow.metadata.namespace}/{name}"] if name else []


def _keys(workflow: Any) -> Iterable[Key]:
    name = workflow.metadata.labels.get(CRON_LABEL)
    return [(workflow.metadata.namespace, name)] if name else []
