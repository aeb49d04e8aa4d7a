"""The base of everything that travels as JSON."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Wire(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="camel",
    kw_only=True,
):
    """A frozen view of a Kubernetes object or a part of one.

    A view names only the fields that Lockstep reads; unknown fields are skipped while decoding,
    which is what makes it an order of magnitude faster than a full model. Views are trees, so
    the garbage collector need not track them (``gc=False``). Subclasses repeat ``frozen=True``,
    which type checkers want to see. Never write a view of somebody
    else's kind back whole: the fields that it does not name would be lost. Patch instead.
    """


def to_builtins(obj: Any) -> Any:
    """Return *obj* (a view, or a tree that holds views) as plain dicts, lists and scalars."""
    return msgspec.to_builtins(obj)


def convert(obj: Any, type_: type[T]) -> T:
    """Return the plain tree *obj* as a *type_*.

    Raises:
        msgspec.ValidationError: where the tree does not fit, naming the path.
    """
    return msgspec.convert(obj, type_)
