"""The recorder: brings what objects say about GPUs onto record, and holds gangs until it is."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from lockstep.api import timestamp
from lockstep.api.core import AnyObject, Node, Pod
from lockstep.api.gang import GANGS, Gang
from lockstep.api.names import RECORD_FINALIZER
from lockstep.insight.history import deriving
from lockstep.insight.history.records import Claim, NodeSpan
from lockstep.insight.history.store import Store
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Key

GANG_INDEX: Final = "usage"
GIVE_UP_SECONDS: Final = 3600.0
"""How long an ended gang is kept for a record that cannot be written."""
SWEEP_SECONDS: Final = 60.0
"""How often open records are held against what is there."""

log = logging.getLogger(__name__)


@dataclass
class Recorder:
    """Writes what pods hold, gang by gang, and which nodes there are."""

    client: Client
    pods: Informer[Pod]
    gangs: Informer[Gang]
    nodes: Informer[Node]
    spaces: Informer[AnyObject]
    store: Store
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Bring the gang at *key* onto record; return when to look again.

        Raises:
            ApiError: when the server cannot be used now.
            sqlite3.Error: when the record cannot be written; the gang is kept until then.
        """
        gang = self.gangs.get(*key)
        try:
            found = await self._record(key, gang)
        except sqlite3.Error as error:
            if gang is None or _ended(gang) is None or not _expired(gang, self.clock()):
                raise
            log.error("gang %s/%s is let go without a record: %s", *key, error)
            found = []
        if gang is not None:
            await self._hold_or_release(gang, holds=any(c.end is None for c in found))
        return None

    async def _record(self, key: Key, gang: Gang | None) -> list[Claim]:
        now = self.clock()
        pods = self.pods.by_index(GANG_INDEX, "/".join(key))
        found = [
            claim
            for pod in pods
            for claim in deriving.claims(pod, gang, self.nodes.get("", pod.spec.node_name), now)
        ]
        there = {pod.metadata.uid for pod in pods}
        ended = _ended(gang) if gang is not None else None
        before = await asyncio.to_thread(self.store.open_claims, *key)
        left = [deriving.gone(c, ended, now) for c in before if c.pod_uid not in there]
        await asyncio.to_thread(self.store.put, [*found, *left])
        return found

    async def _hold_or_release(self, gang: Gang, *, holds: bool) -> None:
        held = RECORD_FINALIZER in gang.metadata.finalizers
        deleting = gang.metadata.deletion_timestamp is not None
        if deleting and held:
            await release(self.client, gang)
        elif holds and not held and not deleting:
            await _patch(self.client, gang, [*gang.metadata.finalizers, RECORD_FINALIZER])

    async def note_node(self, key: Key) -> float | None:
        """Bring the node at *key* onto record: that it came, changed or went.

        Raises:
            sqlite3.Error: when the record cannot be written.
        """
        await asyncio.to_thread(self.store.put, (), self._changes({key[1]}))
        return None

    async def note_namespace(self, key: Key) -> float | None:
        """Bring onto record which namespace has the name at *key*.

        Raises:
            sqlite3.Error: when the record cannot be written.
        """
        space = self.spaces.get(*key)
        if space is not None:
            meta = space.metadata
            created = timestamp.read(meta.creation_timestamp) or 0.0
            await asyncio.to_thread(self.store.put_namespace, meta.name, meta.uid, created)
        return None

    def _changes(self, wanted: set[str] | None = None) -> list[NodeSpan]:
        """Return what changes of the nodes on record, of those *wanted* or of all."""
        now = self.clock()
        before = {
            span.name: span
            for span in self.store.open_nodes()
            if wanted is None or span.name in wanted
        }
        changed: list[NodeSpan] = []
        for name in before.keys() | (wanted or set()):
            node, old = self.nodes.get("", name), before.get(name)
            new = deriving.node_span(node, now) if node is not None else None
            if old is not None and new is not None and old.alike(new):
                continue
            if old is not None:
                same = new is not None and new.uid == old.uid
                # The successor says when it came; then its predecessor was gone.
                end = now if new is None or same else min(now, max(old.start, _born(node)))
                changed.append(replace(old, end=end, guessed=True))
            if new is not None:
                fresh = old is None or new.uid != old.uid
                changed.append(replace(new, start=_born(node) if fresh else now))
        return changed

    async def sweep(self) -> None:
        """From now on close what is open on record and no longer there, again and again."""
        while True:
            try:
                await self.close_gone()
            except sqlite3.Error as error:
                log.error("usage records cannot be written: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)

    async def close_gone(self) -> None:
        """Close open records of pods and nodes that are no longer there.

        Raises:
            sqlite3.Error: when the record cannot be written.
        """
        opened = await asyncio.to_thread(self.store.open_claims)
        there = {pod.metadata.uid for pod in self.pods}
        now = self.clock()
        left = []
        for claim in opened:
            if claim.pod_uid in there:
                continue
            gang = self.gangs.get(claim.namespace, claim.gang)
            left.append(deriving.gone(claim, _ended(gang) if gang else None, now))
        await asyncio.to_thread(self.store.put, left, self._changes())


async def release(client: Client, gang: Gang) -> None:
    """Let an ended gang go.

    Raises:
        ApiError: when the server cannot be used now, or the gang has changed.
    """
    rest = [one for one in gang.metadata.finalizers if one != RECORD_FINALIZER]
    await _patch(client, gang, rest)


async def _patch(client: Client, gang: Gang, finalizers: list[str]) -> None:
    meta = gang.metadata
    # With the version, so that no other finalizer that came meanwhile is lost.
    body = {"metadata": {"finalizers": finalizers, "resourceVersion": meta.resource_version}}
    try:
        await client.patch(GANGS, meta.name, body, meta.namespace)
    except NotFound:
        return


def _born(node: Node | None) -> float:
    return (timestamp.read(node.metadata.creation_timestamp) if node else None) or 0.0


def _ended(gang: Gang) -> float | None:
    return timestamp.read(gang.metadata.deletion_timestamp)


def _expired(gang: Gang, now: float) -> bool:
    ended = _ended(gang)
    return ended is not None and now - ended >= GIVE_UP_SECONDS


@dataclass
class Releaser:
    """Lets ended gangs go where nothing is recorded: after an hour, as a recorder may come back."""

    client: Client
    gangs: Informer[Gang]
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Release the gang at *key* when its time is over; return when to look again.

        Raises:
            ApiError: when the server cannot be used now.
        """
        gang = self.gangs.get(*key)
        if gang is None or RECORD_FINALIZER not in gang.metadata.finalizers:
            return None
        ended = _ended(gang)
        if ended is None:
            return None
        left = ended + GIVE_UP_SECONDS - self.clock()
        if left > 0:
            return left
        log.warning("gang %s/%s is let go: nothing recorded it for an hour", *key)
        await release(self.client, gang)
        return None
