"""The recorder of usage, put under a manager."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from lockstep.api.core import LEASES, NAMESPACES, NODES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import GANG_LABEL, JOB_LABEL
from lockstep.api.price_list import PRICE_LISTS
from lockstep.api.queue import QUEUES
from lockstep.api.team import TEAMS
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.usage_query import USAGE_QUERIES
from lockstep.insight.budget_hold import BudgetHold
from lockstep.insight.budget_watch import BudgetWatch
from lockstep.insight.history import days
from lockstep.insight.history.job_recorder import JobRecorder
from lockstep.insight.history.recorder import GANG_INDEX, Recorder, Releaser
from lockstep.insight.history.store import Store
from lockstep.insight.metrics import AdviceMetrics
from lockstep.insight.usage_answers import UsageAnswers
from lockstep.insight.waiting import WaitingMetrics
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager


def add_advice(manager: Manager) -> None:
    """Show in *manager*'s metrics where the time of jobs' steps goes, and what would be gained."""
    leases = manager.informer(LEASES, label_selector=JOB_LABEL)
    manager.metrics.registry.register(AdviceMetrics(leases))
    waiting = WaitingMetrics(manager.informer(GANGS), manager.informer(QUEUES))
    manager.metrics.registry.register(waiting)


log = logging.getLogger(__name__)

CLOSING_SECONDS = 600.0
"""How often it is looked for days to write."""


def add_history(manager: Manager, records: Path | None, closed: Path | None = None) -> None:
    """Record usage in the file *records* while *manager* leads.

    Days that are over are written as Parquet into the folder *closed*, if one is named. Without a
    file, gangs that an earlier recorder holds are let go after an hour.

    Raises:
        sqlite3.Error: when the file cannot be used.
        OSError: when its folder cannot be made.
    """
    gangs = manager.informer(GANGS)
    if records is None:
        releaser = Releaser(manager.client, gangs)
        manager.add(Controller("unrecorded", releaser.reconcile, workers=2).follow(gangs))
        return
    pods = manager.informer(PODS, indices={GANG_INDEX: _gang_of})
    nodes, spaces = manager.informer(NODES), manager.informer(NAMESPACES)
    store = Store(records)
    shell = Recorder(manager.client, pods, gangs, nodes, spaces, store)
    usage = Controller("usage", shell.reconcile, workers=4)
    manager.add(usage.follow(gangs).follow(pods, _keys))
    manager.add(Controller("node-history", shell.note_node, workers=1).follow(nodes))
    manager.add_task(shell.sweep)
    manager.add(Controller("namespace-history", shell.note_namespace, workers=1).follow(spaces))
    jobs = manager.informer(TRAINING_JOBS)
    recorder = JobRecorder(jobs, store)
    manager.add(Controller("job-history", recorder.reconcile, workers=2).follow(jobs))
    manager.add_task(recorder.sweep)
    if closed is not None:
        manager.add_task(partial(_close_days, store, closed))
    lists, teams = manager.informer(PRICE_LISTS), manager.informer(TEAMS)
    budgets = BudgetWatch(lists, store, teams=teams)
    manager.metrics.registry.register(budgets)
    manager.add_task(budgets.watch)
    hold = BudgetHold(manager.client, gangs, budgets)
    manager.add(Controller("budget", hold.reconcile, workers=2).follow(gangs))
    queries = manager.informer(USAGE_QUERIES)
    answers = UsageAnswers(manager.client, queries, lists, teams, store)
    manager.add(Controller("usage-queries", answers.reconcile, workers=1).follow(queries))


async def _close_days(store: Store, folder: Path) -> None:
    """Write days that are over, again and again."""
    while True:
        try:
            for start in await asyncio.to_thread(
                lambda: list(days.due(store, folder, time.time()))
            ):
                await asyncio.to_thread(days.close, store, folder, start)
        except (sqlite3.Error, OSError, days.DuckDbMissing) as error:
            log.error("days cannot be written to %s: %s", folder, error)
        await asyncio.sleep(CLOSING_SECONDS)


def _keys(pod: Any) -> Iterable[Key]:
    meta = pod.metadata
    return [(meta.namespace, meta.labels.get(GANG_LABEL, "") or meta.name)]


def _gang_of(pod: Any) -> Iterable[str]:
    return ["/".join(key) for key in _keys(pod)]
