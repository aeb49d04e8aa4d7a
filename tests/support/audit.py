"""Watching pods for what must hold at every moment, not only at the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

from lockstep.api.core import PODS, Pod
from lockstep.api.names import ATTEMPT_LABEL, GPUS_ANNOTATION
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer

SPACE = "default"
"""Where the tests' pods are; a real cluster has others of its own elsewhere."""
OVER = ("Succeeded", "Failed")


class Audit:
    """Follows the pods from the start of a scenario: devices held, nodes, incarnations."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self.pods = pods
        self._held: dict[tuple[str, str], str] = {}
        """Who holds a GPU, by node and index."""
        self._of: dict[str, list[tuple[str, str]]] = {}
        self.begin()

    def begin(self) -> None:
        """Begin anew: what was wrong before, and what was made, no longer counts."""
        self.wrong: list[str] = []
        self.made: Counter[tuple[str, str]] = Counter()
        """How often a pod was made, by name and attempt of its job."""

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
        if old is None and new is not None:
            meta = new.metadata
            self.made[(meta.name, meta.labels.get(ATTEMPT_LABEL, ""))] += 1
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

    def _hold(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        places = [(pod.spec.node_name, gpu) for gpu in _gpus(pod).split(",") if gpu]
        for place in places:
            other = self._held.setdefault(place, uid)
            if other != uid:
                self.wrong.append(f"{pod.metadata.name} holds {place}, which {other} holds")
        self._of[uid] = places

    def _let_go(self, uid: str) -> None:
        for place in self._of.pop(uid, ()):
            if self._held.get(place) == uid:
                del self._held[place]

    def check(self) -> None:
        """Fail if anything was wrong at any time."""
        assert not self.wrong, self.wrong


def _gpus(pod: Pod) -> str:
    return pod.metadata.annotations.get(GPUS_ANNOTATION, "")
