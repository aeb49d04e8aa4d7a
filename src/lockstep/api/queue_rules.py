"""What a queue states that cannot be meant, or cannot be kept; told in words."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from lockstep.api.label_syntax import value_problems
from lockstep.api.names import CPU, GPU, GPU_MODEL_LABEL, MEMORY, PODS
from lockstep.api.quantity import parse
from lockstep.api.queue import QueueSpec

_MODEL_PREFIX = f"{GPU}/"
_WITHOUT_DOMAIN = (CPU, MEMORY, "ephemeral-storage", PODS)
_WRITTEN_FOR_GPU = ("gpu", "gpus", "nvidia.com", "nvidia/gpu")
_ALIKE = 0.9
"""How alike two names are, from 0 to 1, of which one must be a slip: nvidia.com/gpus."""


def flaws(spec: QueueSpec, parent: QueueSpec | None = None) -> list[str]:
    """Return what is wrong with the amounts of a queue, by itself and against its parent."""
    found = [*unknown_resources(spec), *beyond_limits(spec)]
    if parent is not None:
        found += beyond_parent(spec, parent)
    return found


def unknown_resources(spec: QueueSpec) -> Iterator[str]:
    """Say of each resource that a queue names and no pod can ever ask for what is wrong with it."""
    for field, amounts in (
        ("guaranteed", spec.guaranteed),
        ("limit", spec.limit),
        ("borrowingLimit", spec.borrowing_limit),
        ("lendingLimit", spec.lending_limit),
    ):
        for resource in amounts:
            if wrong := _never_asked_for(resource):
                yield f"its {field} names {resource}, which no pod can ask for: {wrong}"


def beyond_limits(spec: QueueSpec) -> Iterator[str]:
    """Say of each resource of which more is guaranteed to a queue than its limit lets it use."""
    for resource in sorted(spec.guaranteed.keys() & spec.limit.keys()):
        guaranteed, limit = spec.guaranteed[resource], spec.limit[resource]
        if parse(str(guaranteed)) > parse(str(limit)):
            yield (
                f"guarantees {guaranteed} {resource}, but its limit lets it use {limit}; "
                "raise the limit, or guarantee no more than it"
            )


def beyond_parent(spec: QueueSpec, parent: QueueSpec) -> Iterator[str]:
    """Say of each resource of which more is guaranteed than the parent has or may use.

    A parent that states nothing of a resource leaves it to its parts.
    """
    for resource, guaranteed in sorted(spec.guaranteed.items()):
        for words, amounts in (
            ("is guaranteed", parent.guaranteed),
            ("may use", parent.limit),
        ):
            if resource in amounts and parse(str(guaranteed)) > parse(str(amounts[resource])):
                yield (
                    f"guarantees {guaranteed} {resource}, but its parent {spec.parent} {words} "
                    f"{amounts[resource]}; guarantee no more than that, or raise it there"
                )


def _never_asked_for(resource: str) -> str:
    if resource.startswith(_MODEL_PREFIX):
        model = resource.removeprefix(_MODEL_PREFIX)
        wrong = not model or value_problems(model)
        return f"no node can have the label {GPU_MODEL_LABEL} with {model!r}" if wrong else ""
    if resource == GPU or resource in _WITHOUT_DOMAIN or resource.startswith("hugepages-"):
        return ""
    if meant := _meant(resource):
        return f"did you mean {meant}?"
    return "" if "/" in resource else f"it has no domain before a slash, as {GPU} has"


def _meant(resource: str) -> str:
    known = (GPU, *_WITHOUT_DOMAIN) if "/" in resource else (*_WRITTEN_FOR_GPU, *_WITHOUT_DOMAIN)
    close = get_close_matches(resource.lower(), known, 1, _ALIKE if "/" in resource else 0.7)
    if not close:
        return ""
    return GPU if close[0] in _WRITTEN_FOR_GPU else close[0]
