"""The controller of teams, put under a manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from lockstep.api.core import NAMESPACES
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import TEAM_LABEL
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.team import TEAMS
from lockstep.compat.kubeflow.profile import PROFILES
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.tenants.controller import TEAM_INDEX, TeamController
from lockstep.tenants.core.objects import OWNED
from lockstep.tenants.profile_controller import ProfileController


def add_teams(manager: Manager) -> None:
    """Run the controller of teams while *manager* leads."""
    teams = manager.informer(TEAMS)
    index = {TEAM_INDEX: _team_of}
    owned = {
        # A namespace or queue that bears no label of ours may stand in a team's way.
        resource: manager.informer(resource, indices=index)
        if resource in (NAMESPACES, QUEUES)
        else manager.informer(resource, label_selector=TEAM_LABEL, indices=index)
        for resource in OWNED
    }
    shell = TeamController(manager.client, teams, owned, manager.recorder())
    controller = Controller("team", shell.reconcile, workers=8)
    controller.follow(teams)
    for informer in owned.values():
        controller.follow(informer, _keys)
    controller.follow(owned[QUEUES], _Below(owned[QUEUES]))
    manager.add(controller)


def add_profiles(manager: Manager, ours: Callable[[ObjectMeta], Awaitable[bool]]) -> None:
    """Make a team of each of Kubeflow's profiles that is *ours* to serve."""
    profiles, teams = manager.informer(PROFILES, optional=True), manager.informer(TEAMS)
    shell = ProfileController(manager.client, profiles, teams, manager.recorder(), ours)
    controller = Controller("profile", shell.reconcile)
    controller.follow(profiles)
    controller.follow(teams)
    manager.add(controller)


class _Below:
    """Finds the teams whose members read a queue that has moved, changed its users, or is new."""

    def __init__(self, queues: Informer[Queue]) -> None:
        self._queues = queues
        self._told: dict[str, object] = {}

    def __call__(self, changed: Queue) -> Iterable[Key]:
        """Return the teams with a queue; none where only the status of *changed* differs."""
        name = changed.metadata.name
        queue = self._queues.get("", name)
        place = queue and (queue.spec.parent, queue.spec.allowed, tuple(_team_of(queue)))
        if self._told.get(name, ()) == place:
            return []
        self._told[name] = place
        return [key for one in self._queues for key in _keys(one)]


def _team_of(obj: Any) -> Iterable[str]:
    name = obj.metadata.labels.get(TEAM_LABEL)
    return [name] if name else []


def _keys(obj: Any) -> Iterable[Key]:
    return [("", name) for name in _team_of(obj)]
