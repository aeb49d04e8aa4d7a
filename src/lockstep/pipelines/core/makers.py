"""What an object wants that makes runs: by a clock, or as something new is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep.api.wire import Json


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be done about an object that makes others."""

    make: Json | None = None
    """Its name tells what it is made for: it is made once, however often it is tried."""
    delete: Sequence[Any] = ()
    status: Json = field(default_factory=dict)
    """The whole status."""
    refused: Callable[[str], Json] | None = None
    """The status where the server refuses what is to be made, with its words; else it is tried
    again."""
    again: float | None = None
    """Unix time of the next look; none where only a change calls for one."""


def owner(obj: Any, api_version: str, kind: str) -> Json:
    """Return the reference to *obj* on what it makes, by which that is found again."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": obj.metadata.name,
        "uid": obj.metadata.uid,
        "controller": True,
    }
