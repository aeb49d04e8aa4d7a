"""What claims make of a pod's spec: amounts that it takes and nodes that it must stand on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from lockstep.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
)

NAME = "metadata.name"


def with_amounts(spec: PodSpec, amounts: Mapping[str, int], home: NodeSelector | None) -> PodSpec:
    """Return *spec* with more that the pod takes, and with the nodes that reach its devices."""
    overhead = dict(spec.overhead)
    for name, amount in amounts.items():
        overhead[name] = amount
    affinity = spec.affinity
    if home is not None:
        known = (affinity.node_affinity if affinity else None) or NodeAffinity()
        required = _both(known.required, home)
        affinity = Affinity(msgspec.structs.replace(known, required=required))
    return msgspec.structs.replace(spec, overhead=overhead, affinity=affinity)


def on_node(name: str) -> NodeSelector:
    """Return what selects one node alone."""
    only = NodeSelectorRequirement(key=NAME, operator="In", values=[name])
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[only])])


def node_matches(selector: NodeSelector, node: str, labels: Mapping[str, str]) -> bool:
    """Return whether one of a selector's terms holds of a node."""
    return any(
        all(_holds(one, labels) for one in term.match_expressions)
        and all(_holds(one, {NAME: node}) for one in term.match_fields)
        for term in selector.node_selector_terms
        if term.match_expressions or term.match_fields
    )


def _holds(one: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value = values.get(one.key)
    match one.operator:
        case "In":
            return value in one.values
        case "NotIn":
            return value not in one.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number, bound = int(value or ""), int(one.values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if one.operator == "Gt" else number < bound


def _both(one: NodeSelector | None, other: NodeSelector) -> NodeSelector:
    """Return what selects the nodes that both select."""
    if one is None:
        return other
    return NodeSelector(
        node_selector_terms=[
            NodeSelectorTerm(
                match_expressions=[*a.match_expressions, *b.match_expressions],
                match_fields=[*a.match_fields, *b.match_fields],
            )
            for a in one.node_selector_terms
            for b in other.node_selector_terms
        ]
    )


def all_of(selectors: Iterable[NodeSelector | None]) -> NodeSelector | None:
    """Return the selector of nodes that all of *selectors* take; None where there is none.

    The terms of several become one, of which each part must hold.
    """
    terms = [term for one in selectors if one is not None for term in one.node_selector_terms]
    if not terms:
        return None
    return NodeSelector(
        [
            NodeSelectorTerm(
                match_expressions=[x for term in terms for x in term.match_expressions],
                match_fields=[x for term in terms for x in term.match_fields],
            )
        ]
    )
