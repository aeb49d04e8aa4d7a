"""Whether a node meets a term of a node selector, asked of one node at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lockstep.api.core import NodeSelectorTerm
from lockstep.api.label_requirements import Op, Requirement

_OPERATORS: Final = {
    "In": Op.IN,
    "NotIn": Op.NOT_IN,
    "Exists": Op.EXISTS,
    "DoesNotExist": Op.NOT_EXISTS,
    "Gt": Op.GREATER,
    "Lt": Op.LESS,
}


def term_holds(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Say whether the node *name* with *labels* meets *term*; an empty one holds nowhere."""
    asked = [(one, labels) for one in term.match_expressions]
    asked += [(one, {"metadata.name": name}) for one in term.match_fields]
    return bool(asked) and all(
        Requirement(one.key, _OPERATORS[one.operator], tuple(one.values)).holds(having)
        for one, having in asked
    )
