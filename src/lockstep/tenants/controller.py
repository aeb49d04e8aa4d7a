"""The shell around the plan: reads the caches, carries the actions out, writes the status."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from lockstep.api import timestamp
from lockstep.api.core import NAMESPACES
from lockstep.api.meta import Condition
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import TEAMS, Team, TeamStatus
from lockstep.kube.client import Client
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Key
from lockstep.runtime.execution import execute
from lockstep.runtime.refusals import RETRY_REFUSED
from lockstep.runtime.status import write_status
from lockstep.tenants.core.objects import namespaces, readable_above
from lockstep.tenants.core.plan import plan

TEAM_INDEX: Final = "team"


@dataclass
class TeamController:
    """Brings each team's objects to what the team says, and mends what drifts."""

    client: Client
    teams: Informer[Team]
    owned: Mapping[Resource[Any], Informer[Any]]
    recorder: Recorder
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Bring the team at *key* to what it says; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        team = self.teams.get(*key)
        if team is None or team.metadata.deletion_timestamp is not None:
            return None
        queues = {queue.metadata.name: queue for queue in self.owned[QUEUES]}
        above = readable_above(team.metadata.name, queues)
        todo = plan(team, dict(self._seen(team)), above)
        tried = [await execute(self.client, action) for action in todo.actions]
        problems = [*todo.problems, *(str(refusal) for refusal in tried if refusal)]
        await self._write_status(team, problems)
        return RETRY_REFUSED if problems else None

    def _seen(self, team: Team) -> Iterator[tuple[tuple[str, str, str], tuple[Resource[Any], Any]]]:
        for resource, informer in self.owned.items():
            for obj in informer.by_index(TEAM_INDEX, team.metadata.name):
                meta = obj.metadata
                yield (resource.plural, meta.namespace, meta.name), (resource, obj)
        named: list[tuple[Resource[Any], str]]
        named = [(NAMESPACES, space) for space in namespaces(team)]
        named.append((QUEUES, team.metadata.name))
        for resource, name in named:
            found = self.owned[resource].get("", name)
            if found is not None:
                yield (resource.plural, "", name), (resource, found)

    async def _write_status(self, team: Team, problems: list[str]) -> None:
        now = timestamp.show(self.clock())
        there = next((c for c in team.status.conditions if c.type == "Ready"), None)
        message = "; ".join(problems)
        condition = Condition(
            type="Ready",
            status="False" if problems else "True",
            reason="Refused" if problems else "Complete",
            message=message[:2000],
            last_transition_time=now,
            observed_generation=team.metadata.generation,
        )
        if there is not None and there.status == condition.status:
            condition = replace(condition, last_transition_time=there.last_transition_time)
        status = TeamStatus(
            conditions=[condition], namespaces=namespaces(team), members=len(team.spec.members)
        )
        if await write_status(self.client, TEAMS, team, status) is None:
            return
        if problems and (there is None or there.message != condition.message):
            self.recorder.event(team, "Warning", "NotReady", message[:1000])
