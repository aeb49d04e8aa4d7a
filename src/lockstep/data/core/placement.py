"""Which nodes may cache a dataset: those that its ``nodeAffinity`` allows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lockstep.api.core import NodeSelector, NodeSelectorRequirement
from lockstep.api.label_requirements import Op, requirement
from lockstep.api.wire import convert
from lockstep.compat.fluid.objects import Dataset
from lockstep.compat.fluid.translate import Problem

_OPERATORS = {
    "In": Op.IN,
    "NotIn": Op.NOT_IN,
    "Exists": Op.EXISTS,
    "DoesNotExist": Op.NOT_EXISTS,
    "Gt": Op.GREATER,
    "Lt": Op.LESS,
}


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
        return sorted(
            name
            for name, labels in nodes.items()
            if any(
                all(_holds(one, labels) for one in term.match_expressions)
                and all(_holds(one, {"metadata.name": name}) for one in term.match_fields)
                for term in terms
                if term.match_expressions or term.match_fields
            )
        )
    except (msgspec.ValidationError, ValueError) as error:
        raise Problem(f"spec.nodeAffinity.required of the dataset: {error}") from error


def _holds(one: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    return requirement(one.key, _OPERATORS[one.operator], one.values).holds(labels)
