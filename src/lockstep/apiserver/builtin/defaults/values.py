"""Defaults that are values at fixed places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.normal import Fill


def values(unset: Mapping[str, Any], empty: Mapping[str, Any] | None = None) -> Fill:
    """Return what fills in values by their dotted paths, as ``{"spec.replicas": 1}``.

    Those of *unset* come where nothing stands, those of *empty* also in place of an empty value.
    """
    given = [*((path, value, False) for path, value in unset.items())]
    given += [(path, value, True) for path, value in (empty or {}).items()]
    places = [(*_split(path), value, also_empty) for path, value, also_empty in given]

    def fill(obj: Json) -> None:
        for parents, name, value, also_empty in places:
            part = obj
            for parent in parents:
                part = part.setdefault(parent, {})
            if name not in part or (also_empty and not part[name]):
                # Lists and maps are the object's own.
                part[name] = value.copy() if isinstance(value, list | dict) else value

    return fill


def _split(path: str) -> tuple[list[str], str]:
    *parents, name = path.split(".")
    return parents, name
