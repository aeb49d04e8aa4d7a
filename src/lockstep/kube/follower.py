"""Following a collection: which request comes next, and what its answer changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from lockstep.api.wire import Wire
from lockstep.kube.cache import Cache, Change, Index, Key, key_of
from lockstep.kube.codec import WatchEvent
from lockstep.kube.errors import ApiError, BadRequest, Gone, Invalid, Unreachable

T = TypeVar("T", bound=Wire)

ANY_VERSION = "0"
LONG_ENOUGH = 1.0
"""Seconds: a watch that ends in order after this long may be opened again at once."""
STABLE = 45.0
"""Seconds: a watch that broke after this long begins the waits anew."""
TOO_LARGE = "ResourceVersionTooLarge"


class Step(Enum):
    """What to ask the server for."""

    STREAM = "stream"
    """The present objects and then their changes, in one watch."""
    LIST = "list"
    WATCH = "watch"


@dataclass(frozen=True, slots=True)
class Plan:
    """The next request."""

    step: Step
    resource_version: str


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows from a request's end: start waits anew, and wait before the next request."""

    healthy: bool
    wait: bool


class Follower(Generic[T]):
    """Keeps a cache in step with a collection from what list and watch requests bring."""

    def __init__(
        self,
        indices: Mapping[str, Index] | None = None,
        transform: Callable[[T], T] | None = None,
    ) -> None:
        self.cache: Cache[T] = Cache(indices)
        self.synced = False
        self.resource_version = ""
        self._transform = transform
        self._streams = True
        """Whether the server may know streaming lists."""
        self._restart = True
        """Whether everything must be read again."""
        self._floor = ANY_VERSION
        """No state older than this one may be taken, or time would run backwards."""
        self._initial: dict[Key, T] | None = None
        """While a streaming list comes in: what has come so far."""
        self._step = Step.WATCH
        self._progressed = False
        self._overtaken = False
        """Whether a list that was read beside the planned request has been taken since."""

    def read_in_pages(self) -> None:
        """Ask for lists, not for streams of the present objects.

        A list that names no version is of the newest state, where a stream may begin with an older
        one; and a long one is less work for both sides.
        """
        self._streams = False

    def plan(self) -> Plan:
        """Return the request to make now; it has begun from here on."""
        self._progressed = self._overtaken = False
        self._initial = None
        if not self._restart:
            self._step = Step.WATCH
            return Plan(Step.WATCH, self.resource_version)
        if self._streams:
            self._step = Step.STREAM
            self._initial = {}
            return Plan(Step.STREAM, self._floor)
        self._step = Step.LIST
        return Plan(Step.LIST, "")

    def listed(self, objects: Iterable[T], resource_version: str) -> list[Change[T]]:
        """Take a whole list."""
        if self._behind(resource_version):
            return []
        return self._sync(map(self._shape, objects), resource_version)

    def caught_up(self, objects: Iterable[T], resource_version: str) -> list[Change[T]]:
        """Take a whole list that was read beside the planned request, unless more is known.

        What that request still brings of the time before counts no more.
        """
        if not newer(resource_version, self.resource_version):
            return []
        self._overtaken = True
        return self._sync(map(self._shape, objects), resource_version)

    def event(self, event: WatchEvent[T]) -> list[Change[T]]:
        """Take one event of a watch."""
        if self._initial is not None:
            return self._initial_event(event, self._initial)
        if event.type == "BOOKMARK":
            self._advance(event.resource_version)
            return []
        obj = event.object
        if event.type == "DELETED":
            self._advance(event.resource_version)
            return [] if obj is None else self.cache.remove(key_of(obj), self._shape(obj))
        # Within a watch versions only grow: what is not newer was sent twice.
        if not newer(event.resource_version, self.resource_version):
            return []
        self._advance(event.resource_version)
        return [] if obj is None else self.cache.put(self._shape(obj))

    def ended(self, error: ApiError | None, lasted: float) -> Ending:
        """Take the end of the request that was planned last; *lasted* is in seconds."""
        unfinished = self._initial is not None
        if self._step is Step.STREAM and unfinished and _not_understood(error):
            self._streams = False
        if isinstance(error, Gone) or (error is not None and _ahead_of_server(error)):
            # The server has lost the version: everything is read again. A server that does not
            # even reach the version (it was restored from a backup) may begin from any.
            forget = unfinished or _ahead_of_server(error)
            self._floor = ANY_VERSION if forget else self.resource_version
            self._restart = True
        listed = self._step is Step.LIST and error is None
        enough = LONG_ENOUGH if error is None else STABLE
        healthy = self._progressed or (self._step is not Step.LIST and lasted >= enough)
        return Ending(healthy, wait=error is not None or not (healthy or listed))

    def _initial_event(self, event: WatchEvent[T], initial: dict[Key, T]) -> list[Change[T]]:
        if event.type == "BOOKMARK":
            if not event.synced:
                return []
            self._initial = None
            if self._behind(event.resource_version):
                return []
            return self._sync(initial.values(), event.resource_version)
        if event.object is not None:
            key = key_of(event.object)
            if event.type == "DELETED":
                initial.pop(key, None)
            else:
                initial[key] = self._shape(event.object)
        return []

    def _sync(self, objects: Iterable[T], resource_version: str) -> list[Change[T]]:
        self.resource_version = self._floor = resource_version or ANY_VERSION
        self._restart = False
        self.synced = True
        return self.cache.replace(objects)

    def _behind(self, resource_version: str) -> bool:
        """Return whether a state is older than a list that has been taken meanwhile."""
        return self._overtaken and not newer(resource_version, self.resource_version)

    def _advance(self, resource_version: str) -> None:
        if newer(resource_version, self.resource_version):
            self.resource_version = resource_version
            self._progressed = True

    def _shape(self, obj: T) -> T:
        return obj if self._transform is None else self._transform(obj)


def newer(version: str, than: str) -> bool:
    """Return whether a version comes after another; versions that are no numbers always do."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return bool(version) and version != than


def _not_understood(error: ApiError | None) -> bool:
    """Return whether a streaming list failed as it does on a server that does not know it.

    Such a server refuses the request, ends the watch without the final bookmark, or sends
    nothing more once it has sent what it has.
    """
    if isinstance(error, Unreachable):
        return error.reason == "Silence"
    return error is None or isinstance(error, BadRequest | Invalid)


def _ahead_of_server(error: ApiError) -> bool:
    return any(cause.reason == TOO_LARGE for cause in error.causes)
