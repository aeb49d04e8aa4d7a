"""Pods on nodes that are gone: no kubelet is left to end them."""

from __future__ import annotations

from typing import Final

from lockstep.apiserver.gc.model import Action, Delete, Place

QUARANTINE: Final = 40.0
"""Seconds for which a node may be missing before its pods are deleted."""


class StrandedPods:
    """Which pods are on which node, and since when a node is missing."""

    def __init__(self, quarantine: float = QUARANTINE) -> None:
        self._quarantine = quarantine
        self._nodes: set[str] = set()
        self._on: dict[str, dict[Place, str]] = {}
        self._missing_since: dict[str, float] = {}

    def node_seen(self, name: str) -> None:
        """Take note of a node that is there."""
        self._nodes.add(name)
        self._missing_since.pop(name, None)

    def node_gone(self, name: str, now: float) -> None:
        """Take note of a node that is gone."""
        self._nodes.discard(name)
        if self._on.get(name):
            self._missing_since.setdefault(name, now)

    def pod_seen(self, place: Place, uid: str, node: str, now: float) -> None:
        """Take note of a pod that is bound to a node."""
        self._on.setdefault(node, {})[place] = uid
        if node not in self._nodes:
            self._missing_since.setdefault(node, now)

    def pod_gone(self, place: Place, node: str) -> None:
        """Take note of a pod that is gone from a node."""
        pods = self._on.get(node, {})
        pods.pop(place, None)
        if not pods:
            self._on.pop(node, None)
            self._missing_since.pop(node, None)

    def next_due(self) -> float | None:
        """Return when to ask again, if there is anything to wait for."""
        since = min(self._missing_since.values(), default=None)
        return None if since is None else since + self._quarantine

    def due(self, now: float) -> list[Action]:
        """Return the deletion of every pod whose node has been missing for too long.

        They stay due, a quarantine later, until they are gone.
        """
        actions: list[Action] = []
        for node, since in list(self._missing_since.items()):
            if now - since >= self._quarantine:
                actions += [Delete(place, uid, grace=0) for place, uid in self._on[node].items()]
                self._missing_since[node] = now
        return actions
