"""Our objects that others' become: their kinds, and how they change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lockstep.api.core import CLAIMS, CONFIG_MAPS, PRIORITY_CLASSES
from lockstep.api.gang import GANGS
from lockstep.api.merge import difference
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.validation import Problem
from lockstep.api.wire import Json, convert, to_builtins
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.compat.translation import Native
from lockstep.kube.errors import ApiError

_KINDS: Final = (
    *(TRAINING_JOBS, QUEUES, GANGS, CONFIG_MAPS, NOTEBOOKS, ENVIRONMENTS, KERNELS),
    *(PRIORITY_CLASSES, CLAIMS),
)
MADE: Final[Mapping[str, Resource[Any]]] = {resource.kind: resource for resource in _KINDS}
"""Our kinds that others' become, by their names."""


def change(there: Native, body: Json) -> Json:
    """Return the merge patch that gives *there* what *body* says; what is set by default counts.

    Raises:
        msgspec.ValidationError: when *body* is no valid object of its kind.
    """
    plain = {**body, "metadata": {**body["metadata"], "annotations": present(body)}}
    before, wanted = to_builtins(there), to_builtins(convert(plain, type(there)))
    fields = [name for name in ("spec", "data") if name in body]
    patches: Json = {
        name: difference(before.get(name, {}), wanted.get(name, {})) for name in fields
    }
    told = there.metadata.annotations
    given = body["metadata"].get("annotations", {}).items()
    if other := {key: text for key, text in given if told.get(key) != text}:
        patches["metadata"] = {"annotations": other}
    return {name: patch for name, patch in patches.items() if patch}


def refused(kind: str, error: ApiError) -> Problem:
    """Return *error*, by which an object of *kind* was refused, as a problem."""
    return Problem("spec", None, f"the {kind} made of it was refused: {error}")


def present(body: Json) -> Json:
    """Return the annotations of *body* that are to be there; None stands for those that are not."""
    given = body["metadata"].get("annotations", {})
    return {key: text for key, text in given.items() if text is not None}
