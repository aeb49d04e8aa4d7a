"""Creating, changing and deleting objects: every write of the server comes through here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from lockstep.apiserver import crds, metadata, status
from lockstep.apiserver.addresses import ServiceAddresses
from lockstep.apiserver.admission import Admission
from lockstep.apiserver.catalog import Catalog, Served
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.deletion import Deletion, is_held, plan_deletion
from lockstep.apiserver.isolation import isolate
from lockstep.apiserver.limits.guard import LimitGuard
from lockstep.apiserver.preparation import claim, complete, read_fields, validate
from lockstep.apiserver.store import Key, Record, Store

Json = dict[str, Any]
Mutate = Callable[[Json], Json]

_encode = msgspec.json.Encoder().encode
_GENERATE_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write's query parameters ask for."""

    dry_run: bool = False
    manager: str = "lockstep"
    validation: str = "Warn"
    force: bool = False


class Result(NamedTuple):
    """The outcome of a write: the object as JSON, and what to warn about."""

    data: bytes
    warnings: list[str]
    deleted: bool = False
    """Whether the write took the object away."""


@dataclass(slots=True)
class _Draft:
    """A change while it is worked out."""

    served: Served
    key: Key
    old: Json
    new: Json
    options: WriteOptions
    subresource: str
    applied: bool = False
    warnings: list[str] = field(default_factory=list)


class Objects:
    """Writes objects of every kind: strategy, admission, defaults, validation, then the store.

    Each method decides without awaiting anything, so nothing comes between reading an object
    and deciding what becomes of it; it returns once the decision is durable.
    """

    def __init__(
        self, store: Store, catalog: Catalog, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.clock = clock
        self._admission = Admission(store)
        self._addresses = ServiceAddresses(store)
        self.limits = LimitGuard(store)

    def find(self, served: Served, namespace: str, name: str) -> Record:
        """Return the newest state of an object, for those about to change it.

        Raises:
            StatusError: when it does not exist.
        """
        record = self.store.newest(Key(served.storage, namespace, name))
        if record is None:
            raise status.not_found(served.kind.group, served.kind.plural, name)
        return record

    async def create(
        self,
        served: Served,
        namespace: str,
        obj: Json,
        options: WriteOptions,
        *,
        applied: bool = False,
    ) -> Result:
        """Create *obj*; *applied* when its managers are written already.

        Raises:
            StatusError: when it may not be created as it is.
        """
        kind = served.kind
        warnings = read_fields(served, obj, options.validation)
        key = self._name(served, namespace, obj)
        now = self.clock()
        metadata.begin(obj, kind, namespace, now)
        self._admission.create(served, namespace, obj)
        if served.storage == "pods":
            self.limits.fill_in(namespace, obj)
        complete(served, obj, None)
        self.limits.check(served, namespace, obj, None)
        validate(served, obj, None)
        if not applied:
            claim(served, obj, None, manager=options.manager, now=now)
        self._finish_creation(served, obj, now)
        if options.dry_run:
            return Result(_encode(obj), warnings)
        record = await self.store.put(key, served.to_storage(obj))
        return Result(served.read(record), warnings)

    def _finish_creation(self, served: Served, obj: Json, now: float) -> None:
        if served.storage == "namespaces":
            # What is in it has to go before it may go itself.
            obj["spec"] = {**(obj.get("spec") or {}), "finalizers": ["kubernetes"]}
            obj["status"] = {"phase": "Active"}
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj[
                "metadata"
            ]["name"]
        elif served.storage == crds.STORAGE:
            finalizers = obj["metadata"].setdefault("finalizers", [])
            if crds.CLEANUP not in finalizers:
                finalizers.append(crds.CLEANUP)
            crds.establish(obj, self.catalog, timestamp(now))
        elif served.storage == "services":
            self._addresses.assign(obj, None)

    def _name(self, served: Served, namespace: str, obj: Json) -> Key:
        kind = served.kind
        meta = obj.setdefault("metadata", {})
        name = meta.get("name")
        attempts = 1
        if not name and (prefix := meta.get("generateName")):
            name, attempts = metadata.generate_name(prefix), _GENERATE_ATTEMPTS
        if not name:
            raise status.name_required(kind.group, kind.kind)
        key = Key(served.storage, namespace, name)
        while self.store.newest(key) is not None:
            attempts -= 1
            if not attempts:
                raise status.already_exists(kind.group, kind.plural, key.name)
            key = key._replace(name=metadata.generate_name(meta["generateName"]))
        meta["name"] = key.name
        return key

    async def change(
        self,
        served: Served,
        namespace: str,
        name: str,
        mutate: Mutate,
        options: WriteOptions,
        *,
        subresource: str = "",
        applied: bool = False,
    ) -> Result:
        """Replace an object with what *mutate* makes of it; *applied* as for :meth:`create`.

        Raises:
            StatusError: when there is no such object, *mutate* refuses, or the outcome is wrong.
        """
        record = self.find(served, namespace, name)
        old = served.tree(record)
        new = mutate(served.tree(record))
        draft = _Draft(served, record.key, old, new, options, subresource, applied=applied)
        self._work_out(draft)
        new = draft.new
        if metadata.unchanged(new, old):
            return Result(served.read(record), draft.warnings)
        if options.dry_run:
            return Result(_encode(new), draft.warnings)
        new = served.to_storage(new)
        if _is_finished(new):
            gone = await self.store.remove(record.key, new)
            return Result(served.read(gone), draft.warnings, deleted=True)
        written = await self.store.put(record.key, new)
        return Result(served.read(written), draft.warnings)

    def _work_out(self, draft: _Draft) -> None:
        served, kind = draft.served, draft.served.kind
        self._require_same(draft)
        draft.warnings = read_fields(served, draft.new, draft.options.validation)
        draft.new = isolate(served, draft.new, draft.old, draft.subresource)
        new, old, now = draft.new, draft.old, self.clock()
        metadata.carry_over(new, old)
        self._admission.change(served, new, old)
        complete(served, new, old)
        if draft.subresource in ("", "resize"):
            self.limits.check(served, draft.key.namespace, new, old)
        if draft.subresource in ("", "scale", "status"):
            validate(served, new, old)
        if kind.counts_generation and draft.subresource not in ("status", "binding"):
            metadata.count(new, old)
        if served.storage == crds.STORAGE:
            crds.establish(new, self.catalog, timestamp(now))
        if not draft.applied:
            by = draft.options.manager
            claim(served, new, old, manager=by, now=now, subresource=draft.subresource)
        if served.storage == "services":
            self._addresses.assign(new, old)

    def _require_same(self, draft: _Draft) -> None:
        kind = draft.served.kind
        new, old = draft.new["metadata"], draft.old["metadata"]
        version, uid = new.get("resourceVersion"), new.get("uid")
        if version and version != old["resourceVersion"]:
            raise status.conflict(kind.group, kind.plural, draft.key.name)
        if uid and uid != old["uid"]:
            raise status.uid_conflict(kind.group, kind.plural, draft.key.name, uid, old["uid"])

    async def delete(
        self,
        served: Served,
        namespace: str,
        name: str,
        deletion: Deletion,
        *,
        dry_run: bool = False,
    ) -> Result:
        """Delete an object, or mark it where it has to be finalised or ended first.

        Raises:
            StatusError: when there is none, or it is not the one that the preconditions mean.
        """
        record = self.find(served, namespace, name)
        obj = record.object()
        self._require_preconditions(served, obj, deletion)
        gone = plan_deletion(served.kind, obj, deletion, self.clock())
        if dry_run:
            return Result(_encode(obj), [], deleted=gone)
        if gone:
            gone_record = await self.store.remove(record.key, obj)
            return Result(served.read(gone_record), [], deleted=True)
        if metadata.unchanged(obj, record.object()):
            return Result(served.read(record), [])
        return Result(served.read(await self.store.put(record.key, obj)), [])

    def _require_preconditions(self, served: Served, obj: Json, deletion: Deletion) -> None:
        kind, meta = served.kind, obj["metadata"]
        if deletion.uid and deletion.uid != meta["uid"]:
            raise status.uid_conflict(
                kind.group, kind.plural, meta["name"], deletion.uid, meta["uid"]
            )
        if deletion.resource_version and deletion.resource_version != meta["resourceVersion"]:
            raise status.version_conflict(
                kind.group,
                kind.plural,
                meta["name"],
                deletion.resource_version,
                meta["resourceVersion"],
            )


def _is_finished(obj: Json) -> bool:
    """Return whether the last finalizer of an object that is being deleted is gone."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or is_held(obj):
        return False
    return not meta.get("deletionGracePeriodSeconds")
