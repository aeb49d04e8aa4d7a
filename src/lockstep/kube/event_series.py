"""Which of the things that happen become Event objects, and which only raise a count. Pure.

The rules are those of Kubernetes' own components, so that a component that repeats itself does
not fill the store: what is said again raises the count of the event that said it; many different
messages for one reason become one event; an object that is talked about too much falls silent.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

SIMILAR_LIMIT: Final = 10
"""So many different messages for one reason within the window are still told apart."""
SIMILAR_WINDOW: Final = 600.0
BURST: Final = 25
"""So many events about one object may come at once; after that, one in REFILL seconds."""
REFILL: Final = 300.0
KEPT: Final = 4096
MESSAGE_LIMIT: Final = 1024
COMBINED: Final = "(combined from similar events): "


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to an object."""

    subject: Subject
    type: str
    reason: str
    message: str

    @property
    def series(self) -> tuple[Subject, str, str]:
        """What events must share to be similar."""
        return (self.subject, self.type, self.reason)


@dataclass(frozen=True, slots=True)
class Record:
    """An Event object as it should be: new where *count* is 1, else one more of the same."""

    happening: Happening
    name: str
    count: int
    first: float
    last: float


class _Recent(Generic[K, V]):
    """A dictionary that forgets what was not used for longest."""

    def __init__(self) -> None:
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        found = self._items.get(key)
        if found is not None:
            self._items.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        while len(self._items) > KEPT:
            self._items.popitem(last=False)


@dataclass(slots=True)
class _Similar:
    last: float
    messages: set[str] = field(default_factory=set)


class EventSeries:
    """Turns what happens into records; remembers the most recent ones only."""

    def __init__(self) -> None:
        self._similar: _Recent[tuple[Subject, str, str], _Similar] = _Recent()
        self._records: _Recent[Happening, Record] = _Recent()
        self._tokens: _Recent[Subject, tuple[float, float]] = _Recent()
        self._numbers = itertools.count()

    def take(self, happening: Happening, now: float) -> Record | None:
        """Return the record to write for *happening*, or None where the object is silenced."""
        if len(happening.message) > MESSAGE_LIMIT:
            happening = replace(happening, message=happening.message[: MESSAGE_LIMIT - 1] + "…")
        if not self._allowed(happening.subject, now):
            return None
        key = self._key(happening, now)
        if key is not happening:
            text = (COMBINED + happening.message)[:MESSAGE_LIMIT]
            happening = replace(happening, message=text)
        known = self._records.get(key)
        if known is None:
            name = f"{happening.subject.name}.{int(now * 1000):x}{next(self._numbers) & 0xFFFF:04x}"
            record = Record(happening, name, 1, now, now)
        else:
            record = replace(known, happening=happening, count=known.count + 1, last=now)
        self._records.put(key, record)
        return record

    def _key(self, happening: Happening, now: float) -> Happening:
        """Return what counts as the same: the happening itself, or its whole series."""
        similar = self._similar.get(happening.series)
        if similar is None or now - similar.last > SIMILAR_WINDOW:
            similar = _Similar(now)
        similar.last = now
        known = happening.message in similar.messages
        if not known and len(similar.messages) >= SIMILAR_LIMIT:
            self._similar.put(happening.series, similar)
            return replace(happening, message="")
        similar.messages.add(happening.message)
        self._similar.put(happening.series, similar)
        return happening

    def _allowed(self, subject: Subject, now: float) -> bool:
        tokens, since = self._tokens.get(subject) or (float(BURST), now)
        tokens = min(float(BURST), tokens + (now - since) / REFILL)
        allowed = tokens >= 1.0
        self._tokens.put(subject, (tokens - 1.0 if allowed else tokens, now))
        return allowed
