"""Which queues a new or changed object may name, and which one ``default`` stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lockstep.api import queue_access
from lockstep.api.names import DEFAULT_QUEUE_LABEL, GROUP, QUEUE_LABEL
from lockstep.api.queue import Queue
from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.creator import is_part, waits_alone
from lockstep.apiserver.store import Key, Store

DEFAULT: Final = "default"
_QUEUED: Final = frozenset({"trainingjobs", "gangs", "environments", "pipelineruns"})
"""Kinds of our own with a queue in their spec."""


class QueueUse:
    """Holds objects to the queues that they may use."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues = _Queues(store)

    def fill_in(self, served: Served, namespace: str, obj: Json) -> None:
        """Put the default queue of the namespace in the place of ``default``."""
        spec = obj.get("spec")
        alone = waits_alone(served, obj)
        if not isinstance(spec, dict) or not (alone or _has_queue(served)):
            return
        labels = obj["metadata"].get("labels") or {}
        named = labels.get(QUEUE_LABEL) if alone else spec.get("queue")
        meant = self._labels(namespace).get(DEFAULT_QUEUE_LABEL)
        if meant is None or (named or DEFAULT) != DEFAULT:
            return
        if alone:
            obj["metadata"]["labels"] = {**labels, QUEUE_LABEL: meant}
        else:
            spec["queue"] = meant

    def require(
        self, served: Served, namespace: str, new: Json, old: Json | None, user: User | None
    ) -> None:
        """Require that the user or the namespace may use the queues that *new* names.

        Lockstep's own parts hand on what others asked for: the scheduler holds that.

        Raises:
            StatusError: when one of them is for others.
        """
        if user is None or is_part(user):
            return
        before = set(_named(served, old)) if old is not None else set()
        for name in dict.fromkeys(_named(served, new)):
            if name in before:
                continue
            rule = queue_access.rule_of(name, self._queues)
            if rule is None or rule.lets(namespace, self._labels(namespace)):
                continue
            if not rule.names(user.name, user.groups):
                why = queue_access.refusal(name, namespace, user.name)
                remedy = queue_access.remedy(name, rule)
                kind, about = served.kind, new["metadata"].get("name") or ""
                raise status.forbidden(
                    kind.group, kind.plural, about, f"{why}; what would help: {remedy}"
                )

    def _labels(self, namespace: str) -> Mapping[str, str]:
        found = self._store.newest(Key("namespaces", "", namespace))
        return (found.object()["metadata"].get("labels") or {}) if found is not None else {}


def _has_queue(served: Served) -> bool:
    return served.kind.group == GROUP and served.kind.plural in _QUEUED


def _named(served: Served, obj: Json) -> Iterator[str]:
    """Yield the queues that an object names: for itself, or for the pods that it makes."""
    spec = obj.get("spec")
    if not served.kind.namespaced or not isinstance(spec, dict):
        return
    if _has_queue(served):
        yield str(spec.get("queue") or DEFAULT)
    template = spec.get("template")
    inner = template.get("metadata") if isinstance(template, dict) else None
    for meta in (obj.get("metadata"), inner):
        labels = meta.get("labels") if isinstance(meta, dict) else None
        if isinstance(labels, dict) and labels.get(QUEUE_LABEL):
            yield str(labels[QUEUE_LABEL])
        elif meta is obj.get("metadata") and waits_alone(served, obj):
            yield DEFAULT


class _Queues(Mapping[str, Queue]):
    """The queues of the store, read as they are asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getitem__(self, name: str) -> Queue:
        record = self._store.newest(Key(f"queues.{GROUP}", "", name))
        if record is None:
            raise KeyError(name)
        return msgspec.json.decode(record.data, type=Queue)

    def __iter__(self) -> Iterator[str]:
        return (one.key.name for one in self._store.objects(f"queues.{GROUP}"))

    def __len__(self) -> int:
        return sum(1 for _ in self)
