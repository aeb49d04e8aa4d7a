"""Objects of other systems, and for which fields Lockstep refuses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.compat.registry import sources
from lockstep.compat.translation import Look, nothing
from lockstep.dialects.controller import MADE
from lockstep.jobs.validate import problems

Json = dict[str, Any]
_BY_KIND = {(s.kind.group, s.kind.kind): s for s in sources()}


def lines(path: Path) -> list[Json]:
    """Return the samples of a file, one a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


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
