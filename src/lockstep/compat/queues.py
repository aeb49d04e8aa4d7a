"""Queues of ours, as dialects make them.

A Queue belongs to no namespace, so that an object of one cannot be its owner: an annotation says of
what it was made, and it is deleted when that is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.names import GROUP
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.wire import Json
from lockstep.compat.translation import Native

MADE_OF: Final = f"{GROUP}/made-of"
IMPLIED: Final = "implied"
"""In place of that: others name the Queue as their parent, and no object of their kind says more of
it. It stays, and becomes that object's when there is one."""


def origin(kind: str, group: str, namespace: str, name: str) -> str:
    """Return how an object is called in the annotation of what was made of it."""
    return "/".join(part for part in (f"{kind}.{group}", namespace, name) if part)


def queue(obj: AnyObject, name: str, spec: Json, *, implied: bool = False) -> Json:
    """Return the Queue *name* made of *obj*, or one that *obj* only names."""
    notes = {MADE_OF: IMPLIED} if implied else made_of(obj)
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name, "annotations": notes},
        "spec": spec,
    }


def made_of(obj: AnyObject) -> dict[str, str]:
    """Return the annotations of what is made of *obj* and can have no owner."""
    meta = obj.metadata
    whole = origin(obj.kind, obj.api_version.partition("/")[0], meta.namespace, meta.name)
    return {MADE_OF: whole}


def queue_of(natives: Sequence[Native]) -> Queue | None:
    """Return the queue among *natives*."""
    return next((one for one in natives if isinstance(one, Queue)), None)


def shown(amount: Fraction | int) -> str:
    """Return *amount* as a quantity, in whole units or in thousandths."""
    return str(int(amount)) if amount == int(amount) else f"{int(amount * 1000)}m"
