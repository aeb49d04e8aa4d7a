"""The parts of an object by which garbage is told, and what is done about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class Place(NamedTuple):
    """Where an object lives; ``namespace`` is empty for cluster-scoped kinds."""

    resource: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Owned:
    """A reference from an object to one of its owners."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool = False
    """Whether the owner's foreground deletion waits for this object."""


@dataclass(frozen=True, slots=True)
class Item:
    """An object as a node of the graph."""

    place: Place
    uid: str
    owners: tuple[Owned, ...] = ()
    finalizers: frozenset[str] = frozenset()
    deleting: bool = False

    @property
    def awaits_dependents(self) -> bool:
        """Whether it goes once the objects that block it are gone."""
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        """Whether it goes once its dependents no longer refer to it."""
        return self.deleting and ORPHAN in self.finalizers


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object, unless another one has taken its place."""

    place: Place
    uid: str
    propagation: str = "Background"
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class DropOwners:
    """Remove references to owners from an object."""

    place: Place
    uid: str
    owners: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unblock:
    """Let the owners of an object no longer wait for it."""

    place: Place
    uid: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Remove the finalizer that held an object; to be done when all that came before is done."""

    place: Place
    uid: str
    finalizer: str


Action = Delete | DropOwners | Unblock | Finish
Lookup = Callable[[Place], Item | None]
