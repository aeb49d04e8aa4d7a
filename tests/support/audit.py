"""Watching pods for what must hold at every moment, not only at the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

from lockstep.api.core import PODS, Pod
from lockstep.api.names import (
    ATTEMPT_LABEL,
    GPU,
    GPU_COMPUTE,
    GPU_MEMORY,
    GPUS_ANNOTATION,
    QUEUE_LABEL,
)
from lockstep.api.quantity import to_int
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer

SPACE = "default"
"""Where the tests' pods are; a real cluster has others of its own elsewhere."""
OVER = ("Succeeded", "Failed")
CARD_MEMORY = 80 * 1024
"""MiB of a simulated node's GPU."""
Place = tuple[str, str]
"""A GPU: its node and its index there."""
Part = tuple[float, float]
"""What of a GPU somebody holds: of its compute and of its memory, each as a part of one."""


class Audit:
    """Follows the pods from the start of a scenario: devices held, nodes, incarnations."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self.pods = pods
        self._held: dict[Place, dict[str, Part]] = {}
        """Who holds how much of a GPU."""
        self._of: dict[str, list[Place]] = {}
        self._used: dict[str, tuple[str, int]] = {}
        """In which queue a pod holds how many GPUs."""
        self.begin()

    def begin(self) -> None:
        """Begin anew: what was wrong before, and what was made, no longer counts."""
        self.wrong: list[str] = []
        self.made: Counter[tuple[str, str]] = Counter()
        """How often a pod was made, by name and attempt of its job."""
        self.given: Counter[tuple[str, str]] = Counter()
        """How often it got a node."""
        self.ended: Counter[tuple[str, str]] = Counter()
        """How often somebody began to delete it."""
        self.moves = 0
        """How many pods got a node or began to be deleted in all."""
        self.limits: dict[frozenset[str], int] = {}
        """How many GPUs the pods of some queues may hold together at most."""

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, client: Client) -> AsyncIterator[Audit]:
        """Audit until the block ends."""
        pods = Informer(client, PODS, namespace=SPACE)
        task = asyncio.create_task(pods.run())
        try:
            await pods.wait_synced()
            audit = cls(pods)
            pods.subscribe(audit.take)
            yield audit
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def take(self, change: Change[Pod]) -> None:
        """Take a change in the order in which the server made it."""
        old, new = change.old, change.new
        self._count(old, new)
        if old is not None and new is not None and old.spec.node_name:
            for what, was, now in (
                ("node", old.spec.node_name, new.spec.node_name),
                ("GPUs", _gpus(old), _gpus(new)),
            ):
                if was != now:
                    self.wrong.append(f"{new.metadata.name}: {what} changed from {was} to {now}")
        self._let_go(change.object.metadata.uid)
        if new is not None and new.spec.node_name and new.status.phase not in OVER:
            self._hold(new)

    def _count(self, old: Pod | None, new: Pod | None) -> None:
        present = new or old
        assert present is not None
        meta = present.metadata
        which = meta.name, meta.labels.get(ATTEMPT_LABEL, "")
        self.made[which] += old is None
        given = _has_node(new) and not _has_node(old)
        # One that is deleted at once is never seen on its way.
        ended = (new is None or _leaves(new)) and not _leaves(old)
        self.given[which] += given
        self.ended[which] += ended
        self.moves += given + ended

    def _hold(self, pod: Pod) -> None:
        uid, part = pod.metadata.uid, _part(pod)
        places = [(pod.spec.node_name, gpu) for gpu in _gpus(pod).split(",") if gpu]
        for place in places:
            holders = self._held.setdefault(place, {})
            holders[uid] = part
            compute, memory = (sum(amounts) for amounts in zip(*holders.values(), strict=True))
            if compute > 1.0001 or memory > 1.0001:
                self.wrong.append(
                    f"{pod.metadata.name} holds {place} with {sorted(holders)}: {holders}"
                )
        self._of[uid] = places
        self._used[uid] = pod.metadata.labels.get(QUEUE_LABEL, ""), len(places)
        for queues, most in self.limits.items():
            used = sum(number for queue, number in self._used.values() if queue in queues)
            if used > most:
                self.wrong.append(
                    f"with {pod.metadata.name} {sorted(queues)} hold {used} GPUs of {most}"
                )

    def _let_go(self, uid: str) -> None:
        self._used.pop(uid, None)
        for place in self._of.pop(uid, ()):
            self._held[place].pop(uid, None)

    def check(self) -> None:
        """Fail if anything was wrong at any time."""
        assert not self.wrong, self.wrong


def _gpus(pod: Pod) -> str:
    return pod.metadata.annotations.get(GPUS_ANNOTATION, "")


def _has_node(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name)


def _leaves(pod: Pod | None) -> bool:
    return pod is not None and pod.metadata.deletion_timestamp is not None


def _part(pod: Pod) -> Part:
    """Return what a pod holds of each of its GPUs: all, or the share that it asks for."""
    asked: Counter[str] = Counter()
    for container in pod.spec.containers:
        asked.update({name: to_int(amount) for name, amount in container.resources.limits.items()})
    if asked[GPU]:
        return 1.0, 1.0
    return asked[GPU_COMPUTE] / 100, asked[GPU_MEMORY] / CARD_MEMORY
