"""How close together the pods of a job must be, as KAI's annotations on any job say."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.training import TRAINING_JOBS
from lockstep.compat.tiers import by_labels
from lockstep.compat.translation import Look, Translation

_LEVELS: Final = {
    "required": "kai.scheduler/topology-required-placement",
    "preferred": "kai.scheduler/topology-preferred-placement",
}


def near(obj: AnyObject, made: Translation, look: Look) -> Translation:
    """Return *made* of *obj* with the tiers that its annotations name.

    Raises:
        Refused: for a level that is no tier of the Topology.
    """
    notes = obj.metadata.annotations
    wish = by_labels(
        look,
        **{kind: (f"metadata.annotations[{n}]", notes.get(n, "")) for kind, n in _LEVELS.items()},
    )
    if wish is None:
        return made
    bodies = tuple(
        {**body, "spec": {**body["spec"], "topology": wish}}
        if body["kind"] == TRAINING_JOBS.kind
        else body
        for body in made.objects
    )
    return replace(made, objects=bodies)
