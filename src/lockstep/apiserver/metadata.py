"""What the server itself writes into an object's metadata when it is created or changed."""

from __future__ import annotations

import os
import secrets
import uuid

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.clock import timestamp

# The alphabet of Kubernetes' own suffixes: no vowels, so that no words come about.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_LONGEST_PREFIX = 63 - _SUFFIX
# The server's to write; a client's own values are dropped or overwritten.
_OURS = (
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
    "uid",
)
_KEPT = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid")


def generate_name(prefix: str) -> str:
    """Return *prefix* with a random suffix."""
    suffix = "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX))
    return prefix[:_LONGEST_PREFIX] + suffix


class _Uids:
    """Random UIDs, a page of randomness at a time.

    Asking the system gives up the interpreter lock, which costs more than the bytes.
    """

    def __init__(self) -> None:
        self._pool = b""
        self._taken = 0

    def next(self) -> str:
        """Return a new one."""
        if self._taken >= len(self._pool):
            self._pool, self._taken = os.urandom(4096), 0
        drawn = self._pool[self._taken : self._taken + 16]
        self._taken += 16
        return str(uuid.UUID(bytes=drawn, version=4))


_uids = _Uids()


def begin(obj: Json, kind: Kind, namespace: str, now: float) -> None:
    """Write the metadata of an object that is about to be created.

    Where the server does not count generations, the client states its own.
    """
    meta = obj["metadata"]
    for name in (*_OURS, "resourceVersion"):
        if name != "generation":
            meta.pop(name, None)
    if kind.namespaced:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = _uids.next()
    meta["creationTimestamp"] = timestamp(now)
    if kind.counts_generation:
        meta["generation"] = 1
    if kind.has_status and not kind.status_at_creation:
        obj.pop("status", None)


def carry_over(new: Json, old: Json) -> None:
    """Write into *new* what a change may not touch; the generation is :func:`count`'s."""
    meta, before = new["metadata"], old["metadata"]
    for name in _OURS:
        meta.pop(name, None)
    for name in _KEPT:
        if name in before:
            meta[name] = before[name]
    if "generation" in before:
        meta["generation"] = before["generation"]
    for name in ("name", "namespace", "resourceVersion"):
        if name in before:
            meta[name] = before[name]
        else:
            meta.pop(name, None)
    if "generateName" in before:
        meta.setdefault("generateName", before["generateName"])


def count(new: Json, old: Json) -> None:
    """Raise the generation when anything but metadata and status has changed."""
    if _wish(new) != _wish(old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _wish(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def unchanged(new: Json, old: Json) -> bool:
    """Return whether a write would change nothing but the times in ``managedFields``."""
    if {**new, "metadata": None} != {**old, "metadata": None}:
        return False
    return _without_times(new["metadata"]) == _without_times(old["metadata"])


def _without_times(meta: Json) -> Json:
    managers = [{**entry, "time": None} for entry in meta.get("managedFields", ())]
    return {**meta, "managedFields": managers, "resourceVersion": None}
