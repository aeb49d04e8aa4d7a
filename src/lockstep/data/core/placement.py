"""Which nodes may cache a dataset: those that its ``nodeAffinity`` allows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lockstep.api.core import NodeSelector
from lockstep.api.node_terms import term_holds
from lockstep.api.wire import convert
from lockstep.compat.fluid.objects import Dataset
from lockstep.compat.fluid.translate import Problem


def allowed(dataset: Dataset, nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the names of those *nodes*, each with its labels, that may cache *dataset*.

    Raises:
        Problem: when ``spec.nodeAffinity`` cannot be read.
    """
    required = (dataset.spec.node_affinity or {}).get("required")
    if not required:
        return sorted(nodes)
    try:
        terms = convert(required, NodeSelector).node_selector_terms
        held = ((name, [term_holds(one, nodes[name], name) for one in terms]) for name in nodes)
        return sorted(name for name, found in held if any(found))
    except (msgspec.ValidationError, LookupError, ValueError) as error:
        raise Problem(f"spec.nodeAffinity.required of the dataset: {error}") from error
