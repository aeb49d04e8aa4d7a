"""The controller of teams, ended at each of its calls: every object is there, once and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api.core import NAMESPACES
from lockstep.api.team import TEAMS
from lockstep.kube.client import Client
from lockstep.runtime.manager import Manager
from lockstep.tenants.core.objects import OWNED, TEAM_LABEL
from lockstep.tenants.main import add_teams

Json = dict[str, Any]
TEAM = "crew"


async def teams(client: Client, ready: Callable[[str], None]) -> None:
    """Control teams, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_teams(manager)
    await manager.run(ready)


async def told(stage: Stage) -> None:
    """A team comes, and then wants less."""
    spec: Json = {
        "members": [{"name": "ana", "role": "Admin"}, {"name": "ben"}],
        "queue": {"weight": 2},
        "quota": {"pods": 10},
        "network": "Isolated",
    }
    stage.start()
    await stage.client.create(TEAMS, {"metadata": {"name": TEAM}, "spec": spec})
    await _settled(stage, 8)
    change = {"queue": None, "network": "Open", "members": [{"name": "ana"}]}
    await stage.client.patch(TEAMS, TEAM, {"spec": change})
    await _settled(stage, 5)


async def _settled(stage: Stage, count: int) -> None:
    async def look() -> bool:
        team = await stage.client.get(TEAMS, TEAM)
        ready = any(
            c.status == "True" and c.observed_generation == team.metadata.generation
            for c in team.status.conditions
        )
        return ready and len(await _owned(stage)) == count

    await stage.until(look, f"{count} objects")


async def _owned(stage: Stage) -> list[tuple[str, str]]:
    found = []
    for resource in OWNED:
        listing = await stage.client.list(resource, label_selector=f"{TEAM_LABEL}={TEAM}")
        found += [(resource.plural, item.metadata.name) for item in listing.items]
    return sorted(found)


async def outcome(stage: Stage) -> object:
    """Return the team's objects and condition, and take them away for the next run."""
    team = await stage.client.get(TEAMS, TEAM)
    ends = await _owned(stage), [(c.type, c.status) for c in team.status.conditions]
    for resource in OWNED:
        if resource is NAMESPACES:
            continue
        listing = await stage.client.list(resource, label_selector=f"{TEAM_LABEL}={TEAM}")
        for item in listing.items:
            space = item.metadata.namespace if resource.namespaced else None
            await stage.client.delete(resource, item.metadata.name, space)
    return ends


def story() -> Scenario:
    return Scenario(in_process(teams), told, outcome)


async def test_a_team_is_whole_wherever_its_controller_ends(arena: Arena) -> None:
    await arena.endures(story())


@pytest.mark.real_sample()
async def test_a_team_is_whole_in_any_weather(arena: Arena) -> None:
    await arena.weathers(story(), range(arena.seeds))
