"""Gangs that no object says: pods say themselves, in their systems' words, how many start."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import PODS, Pod
from lockstep.api.gang import GANGS, Gang
from lockstep.api.names import SCHEDULER_NAME
from lockstep.compat.membership import gang_of, members_of, queue_of_pod
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager

IMPLIED_LABEL: Final = "lockstep.dev/implied-by-pods"
"""On a Gang that goes with the last of its pods."""
_INDEX: Final = "implied-gang"


@dataclass(frozen=True)
class ImpliedGangs:
    """Makes the gang of pods that say its size, and deletes it when they are gone."""

    client: Client
    pods: Informer[Pod]
    gangs: Informer[Gang]

    async def reconcile(self, key: Key) -> float | None:
        """Bring the gang at *key* to what its pods say.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        pods = self.pods.by_index(_INDEX, "/".join(key))
        there = self.gangs.get(*key)
        ours = there is not None and IMPLIED_LABEL in there.metadata.labels
        if not pods:
            if there is not None and ours:
                with contextlib.suppress(NotFound):
                    await self.client.delete(GANGS, key[1], key[0], uid=there.metadata.uid)
            return None
        first = min(pods, key=lambda one: one.metadata.name).metadata
        size = max(members_of(one.metadata.labels, one.metadata.annotations) for one in pods)
        if there is None:
            spec: dict[str, Any] = {"minMember": size}
            if queue := queue_of_pod(first.labels, first.annotations, first.namespace):
                spec["queue"] = queue
            meta = {"name": key[1], "labels": {IMPLIED_LABEL: "true"}}
            with contextlib.suppress(AlreadyExists):
                await self.client.create(GANGS, {"metadata": meta, "spec": spec}, key[0])
        elif ours and there.spec.min_member != size:
            await self.client.patch(GANGS, key[1], {"spec": {"minMember": size}}, key[0])
        return None


def add_implied_gangs(manager: Manager) -> None:
    """Make the gangs that pods imply while *manager* leads."""
    pods = manager.informer(PODS, indices={_INDEX: _gang})
    gangs = manager.informer(GANGS)
    shell = ImpliedGangs(manager.client, pods, gangs)
    controller = Controller("implied-gang", shell.reconcile, workers=2)
    controller.follow(
        pods, lambda pod: [(s, n) for s, _, n in (g.partition("/") for g in _gang(pod))]
    )
    controller.follow(gangs, _implied)
    manager.add(controller)


def _gang(pod: Pod) -> Iterable[str]:
    meta = pod.metadata
    if pod.spec.scheduler_name != SCHEDULER_NAME or not members_of(meta.labels, meta.annotations):
        return ()
    name = gang_of(meta.labels, meta.annotations)
    return (f"{meta.namespace}/{name}",) if name else ()


def _implied(gang: Gang) -> Iterable[Key]:
    meta = gang.metadata
    return [(meta.namespace, meta.name)] if IMPLIED_LABEL in meta.labels else []
