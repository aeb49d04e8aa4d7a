"""What every dialect offers: objects of its kinds as ours, and how ours are doing in its words."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from lockstep.api.core import AnyObject
from lockstep.api.gang import Gang
from lockstep.api.notebooks import Environment, Kernel
from lockstep.api.queue import Queue
from lockstep.api.resource import Resource
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json, Wire, convert
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.kubeflow.notebook import Notebook

log = logging.getLogger(__name__)

Native = TrainingJob | Queue | Gang | Notebook | Environment | Kernel
T = TypeVar("T")

MANAGED_ANNOTATION: Final = "lockstep.dev/managed"
"""``true`` gives an object of any kind to Lockstep, ``false`` keeps it from Lockstep."""
MANAGER: Final = "lockstep.dev/controllers"
"""What stands in ``spec.managedBy`` of an object that is Lockstep's to serve."""
_UNKNOWN: Final = re.compile(r"Object contains unknown field `([^`]+)`")
_PATH: Final = re.compile(r" - at `\$\.?([^`]*)`$")


class Strict(Wire, frozen=True, forbid_unknown_fields=True):
    """A view that names all fields that are honoured; any other is an error that names it."""


@dataclass(frozen=True, slots=True)
class Translation:
    """An object of a dialect as objects of ours, or what keeps it from being served."""

    objects: tuple[Json, ...] = ()
    refusals: tuple[Problem, ...] = ()
    expires_after: float | None = None
    """Seconds after its end at which the foreign object is deleted; None: it stays."""


Look = Callable[[ForeignKind, str, str], AnyObject | None]
"""Finds an object of a kind that a source reads, by namespace and name; an empty name finds the
first of the namespace."""


def nothing(kind: ForeignKind, namespace: str, name: str) -> None:
    """Find no object."""


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of a dialect that is served."""

    kind: ForeignKind
    translate: Callable[..., Translation]
    """Makes an object into objects of ours; one that reads others gets what finds them as well."""
    status_of: Callable[[AnyObject, Sequence[Native], Sequence[Problem]], Json]
    """Its status, given what it was made into and what is wrong with it. Depends on nothing else,
    so that nothing is written where nothing has changed."""
    ended: Callable[[AnyObject], bool] = field(default=lambda _: False)
    """Whether its status says that it is over, so that nothing is made of it again."""
    manager: Callable[[AnyObject], str] = field(default=lambda _: "")
    """Who is to serve it by its own ``managedBy``; empty where it does not say."""

    native_name: Callable[[str, str], str] = field(default=lambda namespace, name: name)
    """What is made of it is called, given its namespace and name."""
    names: Callable[[AnyObject], Sequence[str]] | None = None
    """What is made of an object of which several are made; their names do not follow from its."""
    drops: Callable[[AnyObject], bool] = field(default=lambda _: False)
    """Whether what was made of it is deleted while it stays: it is over and wants that."""
    reads: tuple[ForeignKind, ...] = ()
    """Kinds whose objects it names; when one of them changes its own are looked at again."""
    built_in: bool = False
    """Whether every server has the kind, and someone who serves it, but the embedded one."""

    def to_native(self, obj: AnyObject, look: Look = nothing) -> Translation:
        """Return *obj* as objects of ours, or as a refusal; *look* finds those that it names."""
        try:
            return self.translate(obj, look) if self.reads else self.translate(obj)
        except Refused as refused:
            return Translation(refusals=(refused.problem,))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # No rule looked at the part; it is told all the same, and nothing is made by halves.
            log.warning("%s %s: %r", obj.kind, obj.metadata.name, error, exc_info=error)
            words = f"a part of it has a value of a wrong type: {error}"
            return Translation(refusals=(Problem("spec", None, words),))

    @property
    def resource(self) -> Resource[AnyObject]:
        """Return the kind as a resource of the API server."""
        return self.kind.resource


class Refused(Exception):
    """An object cannot be served as it is."""

    def __init__(self, field: str, given: object, remedy: str) -> None:
        super().__init__(field)
        self.problem = Problem(field, given, remedy)


def read(tree: Json, type_: type[T], at: str = "spec") -> T:
    """Return *tree*, found at the field *at*, as a *type_*.

    Raises:
        Refused: when it does not fit, or has a field that *type_* does not name.
    """
    try:
        return convert(tree, type_)
    except msgspec.ValidationError as error:
        text = str(error)
        path = _PATH.search(text)
        where = f"{at}.{path[1]}" if path and path[1] else at
        if unknown := _UNKNOWN.match(text):
            raise Refused(
                f"{where}.{unknown[1]}", None, "it is not served by Lockstep; leave it out"
            ) from None
        raise Refused(where, None, _PATH.sub("", text)) from None


def managed_by(usual: str) -> Callable[[AnyObject], str]:
    """Return what tells who is to serve an object; empty where it names none but the *usual*."""

    def manager(obj: AnyObject) -> str:
        named = obj.spec.get("managedBy")
        return named if isinstance(named, str) and named != usual else ""

    return manager
