"""What a core asks for: objects created, changed, applied or deleted. Plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Json

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; one of that name that exists already is left alone."""

    resource: Resource[Any]
    body: Json
    namespace: str = ""
    """Empty where it is the namespace of the object that the controller works on."""
    overwrite: bool = False
    """Give an object of that name that exists already the same content."""
    fill: Callable[[], Mapping[str, str]] | None = None
    """Makes the values that a Secret still lacks, such as keys: a core has no randomness."""

    @property
    def name(self) -> str:
        """Return the name of the new object."""
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Change:
    """Merge *patch* into an object, or into one of its subresources."""

    resource: Resource[Any]
    name: str
    patch: Json
    namespace: str = ""
    subresource: str | None = None
    version: str = ""
    """The resourceVersion that was decided on; the server refuses the change of any other."""

    @classmethod
    def of(cls, resource: Resource[Any], meta: ObjectMeta, patch: Json) -> Change:
        """Change the object with *meta* as long as it is the version that was seen."""
        return cls(resource, meta.name, patch, meta.namespace, version=meta.resource_version)


@dataclass(frozen=True, slots=True)
class Apply:
    """Create an object or bring its fields to *body*, by server-side apply."""

    resource: Resource[Any]
    name: str
    body: Json
    manager: str
    """The field manager: fields that it applied before and are not in *body* go."""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete exactly the object with this uid; one that is gone already is as good."""

    resource: Resource[Any]
    name: str
    uid: str
    namespace: str = ""
    grace: int | None = None
    """Seconds that a pod gets to end; None is its own number, 0 does not wait for its node."""

    @classmethod
    def of(cls, resource: Resource[Any], meta: ObjectMeta) -> Delete:
        """Delete the object with *meta*."""
        return cls(resource, meta.name, meta.uid, meta.namespace)


Action = Create | Change | Apply | Delete


@dataclass(frozen=True, slots=True)
class Note:
    """An event to be recorded on the object that the controller works on."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Decision(Generic[S]):
    """What to do now for one object.

    A status that records the decision is written first (``record_first``), so that after a crash
    the next process goes through with it instead of deciding a second time. A status that reports
    the result is written last.
    """

    status: S | None = None
    actions: Sequence[Action] = ()
    again: float | None = None
    """Seconds after which time alone changes the decision."""
    notes: Sequence[Note] = ()
    """Recorded when the status changes."""
    record_first: bool = False
