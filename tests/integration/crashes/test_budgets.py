"""Budgets that hold gangs, ended at each call: a gang is held while its budget is spent.

Nothing is let go because the counting has just begun again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.costs import HOUR, claim
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api import timestamp
from lockstep.api.gang import GANGS
from lockstep.api.names import HELD_ANNOTATION
from lockstep.api.price_list import PRICE_LISTS
from lockstep.insight import budget_hold, budget_watch
from lockstep.insight.budget_hold import BudgetHold
from lockstep.insight.budget_watch import BudgetWatch
from lockstep.insight.history.records import NodeSpan
from lockstep.insight.history.store import Store
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.runtime.controller import Controller
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
NOW = timestamp.parse("2026-11-10T00:00:00Z")
SPACE, LIST = "default", "cloud"
OFTEN = 0.05


@pytest.fixture(autouse=True)
def counted_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (budget_watch, "SECONDS"),
        (budget_hold, "SECONDS"),
        (budget_hold, "SOON"),
    ):
        monkeypatch.setattr(module, name, OFTEN)


def allowing(month: float) -> Json:
    budget = {"queue": "research", "month": month, "hold": True}
    return {"spec": {"currency": "EUR", "prices": [{"gpuHour": 2}], "budgets": [budget]}}


class Story:
    """A queue has spent 20; a gang of it is held while 10 are allowed, another is not."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "usage.db")
        used = claim("u", 0, NOW - 10 * HOUR, NOW, queue="research")
        self.store.put([used], [NodeSpan("nu", "n", 1, NOW - 10 * HOUR)])

    async def hold(self, client: Client, ready: Callable[[str], None]) -> None:
        manager = Manager(client, name="controllers", leader_elect=False)
        lists, gangs = manager.informer(PRICE_LISTS), manager.informer(GANGS)
        watch = BudgetWatch(lists, self.store, lambda: NOW)
        manager.add_task(watch.watch)
        shell = BudgetHold(manager.client, gangs, watch)
        manager.add(Controller("budget", shell.reconcile).follow(gangs).follow(lists))
        await manager.run(ready)

    async def told(self, stage: Stage) -> None:
        client = stage.client
        with contextlib.suppress(NotFound):
            await client.delete(PRICE_LISTS, LIST)
        await client.create(PRICE_LISTS, {"metadata": {"name": LIST}, **allowing(10)})
        stage.start()
        for name, queue in (("waits", "research"), ("free", "other")):
            spec = {"minMember": 1, "queue": queue}
            await client.create(GANGS, {"metadata": {"name": name}, "spec": spec}, SPACE)
        await stage.until(lambda: self._says(client, "budget: "), "the gang is held")
        await client.patch(PRICE_LISTS, LIST, allowing(50))
        await stage.until(lambda: self._says(client, ""), "the gang is let go")
        await client.patch(PRICE_LISTS, LIST, allowing(15))
        await stage.until(lambda: self._says(client, "budget: "), "it is held again")

    async def _says(self, client: Client, begin: str) -> bool:
        gang = await client.get(GANGS, "waits", SPACE)
        said = gang.metadata.annotations.get(HELD_ANNOTATION, "")
        return said.startswith(begin) if begin else not said

    async def outcome(self, stage: Stage) -> object:
        found = (await stage.client.list(GANGS, SPACE)).items
        return sorted((g.metadata.name, g.metadata.annotations.get(HELD_ANNOTATION)) for g in found)


def story(folder: Path) -> Scenario:
    played = Story(folder)
    return Scenario(in_process(played.hold), played.told, played.outcome)


async def test_gangs_are_held_and_let_go_wherever_the_holder_ends(
    arena: Arena, tmp_path: Path
) -> None:
    await arena.endures(story(tmp_path))
