"""Creating, changing and deleting objects: every write of the server comes through here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from lockstep.api.wire import Json, encode
from lockstep.apiserver import crds, metadata, status
from lockstep.apiserver.addresses import ServiceAddresses
from lockstep.apiserver.admission import Admission
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.budget import draw
from lockstep.apiserver.builtin.rules.metadata import immutable
from lockstep.apiserver.catalog import Catalog, Served
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.creator import keep
from lockstep.apiserver.deletion import Deletion, Outcome, is_held, plan_deletion
from lockstep.apiserver.limits.guard import LimitGuard
from lockstep.apiserver.preparation import begin, claim, complete, read_fields, validate
from lockstep.apiserver.store import Key, Record, Store
from lockstep.apiserver.subresource_fields import isolate, require_gentle

Mutate = Callable[[Json], Json]

_GENERATE_ATTEMPTS = 8
# What is written through these, the server itself writes: it has no field manager.
_UNCLAIMED = frozenset({"binding", "eviction"})


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write's query parameters ask for."""

    dry_run: bool = False
    manager: str = "lockstep"
    validation: str = "Warn"
    force: bool = False
    patches: bool = False
    """Whether it is a patch, which cannot mean another object than the one there is."""
    user: User | None = None
    """Who asks; None for the server's own controllers."""


class Result(NamedTuple):
    """The outcome of a write: the object as JSON, and what to warn about."""

    data: bytes
    warnings: list[str]
    deleted: bool = False
    """Whether the write took the object away."""

    def warned(self, more: list[str]) -> Result:
        """Return the same outcome with *more* to warn about."""
        return self._replace(warnings=[*self.warnings, *more]) if more else self


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
        complete(served, obj, None)
        if not applied:
            claim(served, obj, None, manager=options.manager, now=now)
        self._admission.create(served, namespace, obj, options.user)
        if served.storage == "pods":
            self.limits.fill_in(namespace, obj)
        begin(served, obj)
        self.limits.check(served, namespace, obj, None)
        validate(served, obj, None)
        self._finish_creation(served, obj, now)
        self._require_free(served, key)
        if options.dry_run:
            return Result(encode(obj), warnings)
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
        """Return where *obj* is to be, whose name is drawn here if it has but a prefix."""
        kind = served.kind
        meta = obj.setdefault("metadata", {})
        name, prefix = meta.get("name"), meta.get("generateName")
        if not name and not prefix:
            raise status.name_required(kind.group, kind.kind)
        for number in range(1 if name else _GENERATE_ATTEMPTS):
            meta["name"] = name or draw(number, lambda: metadata.generate_name(prefix))
            key = Key(served.storage, namespace, meta["name"])
            if self.store.newest(key) is None:
                break
        return key

    def _require_free(self, served: Served, key: Key) -> None:
        if self.store.newest(key) is not None:
            raise status.already_exists(served.kind.group, served.kind.plural, key.name)

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
            return Result(encode(new), draft.warnings)
        new = served.to_storage(new)
        if _is_finished(new):
            # What goes is the object as it was; the answer tells what the write made of it.
            await self.store.remove(record.key, record.object())
            return Result(encode(draft.new), draft.warnings, deleted=True)
        written = await self.store.put(record.key, new)
        return Result(served.read(written), draft.warnings)

    def _work_out(self, draft: _Draft) -> None:
        served, kind = draft.served, draft.served.kind
        self._require_same(draft)
        draft.warnings = read_fields(served, draft.new, draft.options.validation)
        sent = draft.new
        draft.new = isolate(served, sent, draft.old, draft.subresource)
        new, old, now = draft.new, draft.old, self.clock()
        metadata.carry_over(new, old)
        keep(served, new, old)
        complete(served, new, old)
        if not (draft.applied or draft.subresource in _UNCLAIMED):
            self._claim(draft, sent, now)
        self._admission.change(served, new, old, draft.options.user)
        if draft.subresource in ("", "resize"):
            self.limits.check(served, draft.key.namespace, new, old)
        if draft.subresource in ("ephemeralcontainers", "resize"):
            require_gentle(new, old, draft.subresource)
        if draft.subresource in ("", "scale", "status"):
            validate(served, new, old, draft.subresource)
        if kind.counts_generation and draft.subresource not in ("status", *_UNCLAIMED):
            metadata.count(new, old)
        if served.storage == crds.STORAGE:
            crds.establish(new, self.catalog, timestamp(now))
        if served.storage == "services":
            self._addresses.assign(new, old)

    def _claim(self, draft: _Draft, sent: Json, now: float) -> None:
        """Note what the writer owns: of a resize all that was *sent*, even what does not change."""
        served, options, new = draft.served, draft.options, draft.new
        stated = new
        if draft.subresource == "resize":
            complete(served, sent, draft.old)
            stated = sent
        claim(
            served,
            stated,
            draft.old,
            manager=options.manager,
            now=now,
            subresource=draft.subresource,
        )
        if stated is not new and "managedFields" in stated["metadata"]:
            new["metadata"]["managedFields"] = stated["metadata"]["managedFields"]

    def _require_same(self, draft: _Draft) -> None:
        kind = draft.served.kind
        new, old = draft.new["metadata"], draft.old["metadata"]
        version, uid = new.get("resourceVersion"), new.get("uid")
        if version and version != old["resourceVersion"]:
            raise status.conflict(kind.group, kind.plural, draft.key.name)
        if uid and uid != old["uid"] and draft.options.patches:
            wrong = immutable(uid, old["uid"], "metadata.uid") * 2
            raise status.invalid(kind.group, kind.kind, draft.key.name, wrong)
        if uid and uid != old["uid"]:
            raise status.uid_conflict(kind.group, kind.plural, draft.key, uid, old["uid"])

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
        self._admission.delete(served, name)
        record = self.find(served, namespace, name)
        obj = record.object()
        self._require_preconditions(served, obj, deletion)
        outcome = plan_deletion(served.kind, obj, deletion, self.clock())
        if dry_run:
            return Result(encode(obj), [], deleted=outcome is not Outcome.MARKED)
        is_changed = not metadata.unchanged(obj, record.object())
        if outcome is Outcome.MARKED:
            written = await self.store.put(record.key, obj) if is_changed else record
            return Result(served.read(written), [])
        if outcome is Outcome.ENDED and is_changed:
            # Both are decided at once, and become durable together.
            marked, gone = self.store.put(record.key, obj), self.store.remove(record.key, obj)
            await marked
            return Result(served.read(await gone), [], deleted=True)
        return Result(served.read(await self.store.remove(record.key, obj)), [], deleted=True)

    def _require_preconditions(self, served: Served, obj: Json, deletion: Deletion) -> None:
        kind, meta = served.kind, obj["metadata"]
        if deletion.uid and deletion.uid != meta["uid"]:
            why = (
                f"the UID in the precondition ({deletion.uid}) does not match the UID in record "
                f"({meta['uid']}). The object might have been deleted and then recreated"
            )
            raise status.conflict(kind.group, kind.kind, meta["name"], why)
        if deletion.resource_version and deletion.resource_version != meta["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({deletion.resource_version}) does not "
                f"match the ResourceVersion in record ({meta['resourceVersion']}). The object "
                "might have been modified"
            )
            raise status.conflict(kind.group, kind.kind, meta["name"], why)


def _is_finished(obj: Json) -> bool:
    """Return whether the last finalizer of an object that is being deleted is gone."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or is_held(obj):
        return False
    return not meta.get("deletionGracePeriodSeconds")
