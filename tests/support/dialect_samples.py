"""Objects of other systems, and for which fields Lockstep refuses them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.registry import sources
from lockstep.compat.translation import Look, nothing
from lockstep.dialects.made import MADE
from lockstep.jobs.validate import problems

Json = dict[str, Any]
_BY_KIND = {(s.kind.group, s.kind.kind): s for s in sources()}


def lines(path: Path) -> list[Json]:
    """Return the samples of a file, one a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def finder(objects: Sequence[Json]) -> Look:
    """Return what finds *objects*, by kind and name."""
    known = {(one["kind"], one["metadata"]["name"]): one for one in objects}

    def look(kind: ForeignKind, namespace: str, name: str) -> AnyObject | None:
        found = known.get((kind.kind, name))
        return None if found is None else convert(found, AnyObject)

    return look


def refusals(body: Json, look: Look = nothing) -> list[str]:
    """Return the fields for which the object is refused; none where it runs."""
    meta = {"name": "sample", "namespace": "default", "uid": "u", **body["metadata"]}
    obj = convert({**body, "metadata": meta}, AnyObject)
    found = _BY_KIND[obj.api_version.partition("/")[0], obj.kind].to_native(obj, look)
    wrong = [problem.field for problem in found.refusals]
    for made in found.objects:
        native = convert(made, MADE[made["kind"]].type)
        if isinstance(native, TrainingJob):
            wrong += [problem.field for problem in problems(native)]
    return wrong
