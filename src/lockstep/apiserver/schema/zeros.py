"""Which fields Kubernetes leaves out, or writes, when they hold nothing.

Its Go structs have fields that are no pointers: some vanish when they are empty, zero or false,
some are written so although no client set them, times as null. The OpenAPI documents do not tell
them apart from others; ``tools/schemas/zeros.py`` reads it from the sources.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec


class Zeros(msgspec.Struct, frozen=True):
    """Such fields of one component."""

    dropped: frozenset[str] = frozenset()
    """Those that are left out when they are empty, zero or false."""
    written: dict[str, Any] = {}
    """Those that are always there, and what they hold when no client set them."""
    order: list[str] = []
    """All fields, in the order in which messages show them."""


_NONE: Final = Zeros()


@cache
def _known() -> dict[str, Zeros]:
    data = resources.files("lockstep.apiserver").joinpath("data", "zeros.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Zeros])


def zeros_of(component: str) -> Zeros:
    """Return the fields of that sort of a component, by its name in the OpenAPI documents."""
    return _known().get(component.removeprefix("io.k8s."), _NONE)
