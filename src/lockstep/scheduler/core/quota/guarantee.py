"""What the guaranteed amounts of a queue hold, of all that is used or asked for.

A guarantee on one model of GPUs is one on GPUs too: what it holds needs no other. So of all GPUs a
queue holds as many as are guaranteed of any model, or as its guarantees on models hold, where
that is more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.api.names import GPU

MODEL_PREFIX = f"{GPU}/"
"""Begins the name of the GPUs of one model, which are a resource beside all GPUs."""
_NOTHING: Mapping[str, int] = {}


def short(
    guaranteed: Mapping[str, int],
    used: Mapping[str, int],
    resource: str,
    asked: Mapping[str, int] = _NOTHING,
) -> int:
    """Return how much of a resource is beyond what is guaranteed, with what is *asked* used too.

    What is asked of models is the most that goes to each; together that may be more than all GPUs
    that are asked for, and all of these go to such models then.
    """
    total = used.get(resource, 0) + asked.get(resource, 0)
    held = guaranteed.get(resource, 0)
    if resource == GPU and total > held:
        models = [name for name in guaranteed if name.startswith(MODEL_PREFIX)]
        there = {name: min(used.get(name, 0), guaranteed[name]) for name in models}
        more = sum(min(asked.get(name, 0), guaranteed[name] - there[name]) for name in models)
        held = max(held, sum(there.values()) + min(asked.get(GPU, 0), more))
    return max(0, total - held)


def holds(
    guaranteed: Mapping[str, int],
    used: Mapping[str, int],
    asked: Mapping[str, int],
    contested: Iterable[str],
) -> bool:
    """Return whether what is asked of the *contested* resources, if anything is, is within what is
    guaranteed, beside what is used.
    """
    relevant = [name for name in contested if asked.get(name)]
    return bool(relevant) and not any(short(guaranteed, used, name, asked) for name in relevant)


def bears_on(asked: Mapping[str, int], contested: Iterable[str]) -> bool:
    """Return whether all GPUs that are asked for are contested, to whichever of the models that
    are named they go; true where none is named.
    """
    named = {name for name in asked if name.startswith(MODEL_PREFIX)}
    contested = set(contested)
    return GPU in contested or named <= contested
