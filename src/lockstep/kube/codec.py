"""Between bytes and views: decoders compiled once for each view, lists decoded without GC."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from lockstep.api.wire import Wire, to_builtins
from lockstep.kube.errors import Status, Undecodable

T = TypeVar("T", bound=Wire)

encode = msgspec.json.encode


class ListMeta(Wire, frozen=True):
    """The metadata of a page of a list."""

    resource_version: str = ""
    # The wire calls it "continue", which Python keeps for itself.
    next_page: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], gc=False):
    """One page of a list."""

    metadata: ListMeta
    items: list[T] | None = None


class _RawPage(msgspec.Struct, gc=False):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class _PageHead(msgspec.Struct, gc=False):
    metadata: ListMeta


class _Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Head(Wire, frozen=True):
    metadata: _Metadata = _Metadata()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that does not fit its view."""

    namespace: str
    name: str
    resource_version: str
    problem: str


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One event of a watch; *object* is None for bookmarks and for what cannot be read.

    *synced* marks the bookmark after which the initial events are complete.
    """

    type: str
    object: T | None
    resource_version: str
    synced: bool = False
    unreadable: Unreadable | None = None


class _Event(msgspec.Struct, Generic[T], gc=False):
    type: str
    object: T


class _RawEvent(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_HEAD = msgspec.json.Decoder(_Head)
_RAW_PAGE = msgspec.json.Decoder(_RawPage)
_PAGE_HEAD = msgspec.json.Decoder(_PageHead)
_ITEMS = re.compile(rb',\s*"items"\s*:')
_HEAD_LIMIT = 64 << 10
"""Bytes at the beginning of a page in which its metadata are looked for alone."""
_RAW_EVENT = msgspec.json.Decoder(_RawEvent)
_STATUS = msgspec.json.Decoder(Status)
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@lru_cache(maxsize=256)
def _decoder(type_: type[Wire]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)


@lru_cache(maxsize=256)
def _page_decoder(type_: type[Wire]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(Page[type_])  # type: ignore[valid-type]


@lru_cache(maxsize=256)
def _event_decoder(type_: type[Wire]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Event[type_])  # type: ignore[valid-type]


@contextmanager
def gc_paused() -> Iterator[None]:
    """Keep the garbage collector from walking a big list again and again while it grows."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _understood(type_: type[Wire]) -> Iterator[None]:
    try:
        yield
    except msgspec.MsgspecError as error:
        raise Undecodable(f"the answer is not a {type_.__name__}: {error}") from None


def decode(type_: type[T], data: bytes) -> T:
    """Return the object in *data*.

    Raises:
        Undecodable: when it does not fit the view; names the path.
    """
    with _understood(type_):
        return _read(type_, data)


def _read(type_: type[T], data: bytes | msgspec.Raw) -> T:
    """Decode one object; a null is as good as a field left out, as it is in Kubernetes.

    Go writes null for an unset time or list that is not marked optional, so any field may be null.
    Those objects are rare enough to be read twice.
    """
    try:
        return cast("T", _decoder(type_).decode(data))
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(msgspec.json.decode(data)), type_)


def _without_nulls(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(value) for value in tree]
    return tree


def decode_page(type_: type[T], data: bytes) -> tuple[Page[T], list[Unreadable]]:
    """Return a page of a list, and what in it does not fit the view.

    Raises:
        Undecodable: when it is not a list at all.
    """
    with gc_paused(), _understood(type_):
        try:
            return _page_decoder(type_).decode(data), []
        except msgspec.ValidationError:
            return _decode_one_by_one(type_, data)


def next_page(data: bytes) -> str:
    """Return the token of the page after the one in *data*; empty where that is the last.

    The objects are not looked at, where the page says this before them, as servers do.

    Raises:
        Undecodable: when it is not a list at all.
    """
    items = _ITEMS.search(data, 0, _HEAD_LIMIT)
    if items is not None:
        # Up to the objects it must be a whole page, or this was not where they begin.
        with suppress(msgspec.MsgspecError):
            return _PAGE_HEAD.decode(data[: items.start()] + b"}").metadata.next_page
    with _understood(ListMeta):
        return _PAGE_HEAD.decode(data).metadata.next_page


def _decode_one_by_one(type_: type[T], data: bytes) -> tuple[Page[T], list[Unreadable]]:
    raw = _RAW_PAGE.decode(data)
    items: list[T] = []
    unreadable: list[Unreadable] = []
    for item in raw.items or ():
        try:
            items.append(_read(type_, item))
        except msgspec.ValidationError as error:
            unreadable.append(_unreadable(item, error))
    return Page(metadata=raw.metadata, items=items), unreadable


def _unreadable(raw: msgspec.Raw, error: Exception) -> Unreadable:
    meta = _HEAD.decode(raw).metadata
    return Unreadable(meta.namespace, meta.name, meta.resource_version, str(error))


def decode_event(type_: type[T], line: bytes) -> WatchEvent[T] | Status:
    """Return the event in one line of a watch; a Status stands for an ERROR event.

    Raises:
        Undecodable: when it is not an event at all.
    """
    try:
        event = _event_decoder(type_).decode(line)
    except msgspec.DecodeError:
        with _understood(type_):
            return _decode_odd_event(type_, line)
    if event.type in ("ADDED", "MODIFIED", "DELETED"):
        return WatchEvent(event.type, event.object, event.object.metadata.resource_version)
    with _understood(type_):
        return _decode_odd_event(type_, line)


def _decode_odd_event(type_: type[T], line: bytes) -> WatchEvent[T] | Status:
    """Decode bookmarks and errors, which need not look like the kind, and unreadable objects."""
    event = _RAW_EVENT.decode(line)
    if event.type == "ERROR":
        return _STATUS.decode(event.object)
    meta = _HEAD.decode(event.object).metadata
    if event.type == "BOOKMARK":
        synced = (meta.annotations or {}).get(INITIAL_EVENTS_END) == "true"
        return WatchEvent("BOOKMARK", None, meta.resource_version, synced=synced)
    if event.type not in ("ADDED", "MODIFIED", "DELETED"):
        return WatchEvent(event.type, None, meta.resource_version)
    try:
        return WatchEvent(event.type, _read(type_, event.object), meta.resource_version)
    except msgspec.ValidationError as error:
        problem = _unreadable(event.object, error)
        return WatchEvent(event.type, None, meta.resource_version, unreadable=problem)


def with_identity(api_version: str, kind: str, obj: Wire | dict[str, Any]) -> dict[str, Any]:
    """Return *obj* as a plain tree that says what it is; views leave defaults out."""
    tree = dict(obj) if isinstance(obj, dict) else to_builtins(obj)
    return {**tree, "apiVersion": api_version, "kind": kind}
