"""What nodes must be for a shape to stand on them, full or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from lockstep.api.core import NodeSelectorRequirement, NodeSelectorTerm
from lockstep.api.names import (
    DEVICES_ANNOTATION,
    GPU_MODE_LABEL,
    NUMA_NODES_ANNOTATION,
    SIMULATED_TAINT,
)
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources.device_inventory import Layout
from lockstep.scheduler.core.resources.selectors import (
    NAME_FIELD,
    format_taint,
    matches,
    untolerated,
)
from lockstep.scheduler.core.util.array_types import BoolArray
from lockstep.scheduler.core.util.unique import distinct

HARD_EFFECTS = ("NoSchedule", "NoExecute")
UNSCHEDULABLE_TAINT = (("node.kubernetes.io/unschedulable", "", "NoSchedule"),)
SIMULATED = "simulated, for jobs that say `simulated: true`"


@dataclass(frozen=True, slots=True)
class Filter:
    """One requirement on nodes: the rows that pass, and how it reads when a node does not."""

    kind: str
    words: str
    passes: BoolArray


def filters(table: NodeTable, shape: PodShape) -> Iterator[Filter]:
    """Yield every requirement of a shape on what a node is, in the order they are explained."""
    yield Filter("NotReady", "not ready", table.ready)
    if untolerated(UNSCHEDULABLE_TAINT, shape.tolerations, HARD_EFFECTS):
        yield Filter("Unschedulable", "cordoned", table.schedulable)
    for key, value in shape.selector.items():
        passes = table.label(key).any_of([value])
        if key == NAME_FIELD:
            yield Filter("TensorGroup", f"not {value}, where its tensor group stands", passes)
        else:
            yield Filter("NodeSelector", f"without the label {key}={value}", passes)
    if shape.required is not None:
        yield _affinity(table, shape.required.node_selector_terms)
    yield from _taints(table, shape)
    yield from _gpu_mode(table, shape)
    yield from _unknown_inside(table, shape)


def _gpu_mode(table: NodeTable, shape: PodShape) -> Iterator[Filter]:
    """Yield that a node gives its GPUs otherwise than the shape takes them, where any says so."""
    if not shape.takes_gpus:
        return
    other, asked = (
        ("whole", "shares of GPUs") if shape.share is not None else ("shared", "whole GPUs")
    )
    closed = table.label(GPU_MODE_LABEL).any_of([other])
    if closed.any():
        yield Filter("GpuMode", f"closed to {asked} by {GPU_MODE_LABEL}={other}", ~closed)


def _unknown_inside(table: NodeTable, shape: PodShape) -> Iterator[Filter]:
    """Yield what nodes must state before it can be told that devices are aligned there."""
    required, column = shape.alignment.required, table.columns.layout_column
    if not required or column is None:
        return
    numbers, layouts = table.allocatable[column], table.columns.layouts
    host = shape.cpu > 0 or shape.memory > 0
    for relations, annotation, states in (
        (("nvlink", "pcie"), DEVICES_ANNOTATION, lambda layout: layout.stated),
        (("numa",), NUMA_NODES_ANNOTATION, partial(Layout.states_numa, host=host)),
    ):
        if not required.intersection(relations):
            continue
        known = np.array([states(layout) for layout in layouts], dtype=bool)
        passes = known[numbers] if len(known) else np.zeros(table.capacity, dtype=bool)
        flaws = [layouts[n].flaw for n in np.unique(numbers[table.live & ~passes])]
        flaw = next((flaw for flaw in flaws if annotation in flaw), "")
        words = f"without {annotation}" + (f" that can be read ({flaw})" if flaw else "")
        yield Filter("NoInventory", words, passes)


def _affinity(table: NodeTable, terms: list[NodeSelectorTerm]) -> Filter:
    passes = np.zeros(table.capacity, dtype=bool)
    for term in terms:
        passes |= term_rows(table, term)
    words = " or ".join(_term_words(term) for term in terms)
    return Filter("NodeAffinity", f"outside the node affinity ({words})", passes)


def term_rows(table: NodeTable, term: NodeSelectorTerm) -> BoolArray:
    """Return the rows that fulfil a term of a node selector."""
    if not term.match_expressions and not term.match_fields:
        return np.zeros(table.capacity, dtype=bool)  # an empty term matches nothing, as upstream
    passes = np.ones(table.capacity, dtype=bool)
    for requirement in term.match_expressions:
        passes &= matches(table.label(requirement.key), requirement)
    for requirement in term.match_fields:
        if requirement.key == "metadata.name":
            passes &= matches(table.label(NAME_FIELD), requirement)
        else:
            passes[:] = False
    return passes


def _term_words(term: NodeSelectorTerm) -> str:
    parts = [_requirement_words(r) for r in (*term.match_expressions, *term.match_fields)]
    return " and ".join(parts) or "nothing"


def _requirement_words(requirement: NodeSelectorRequirement) -> str:
    values = ",".join(requirement.values)
    return f"{requirement.key} {requirement.operator} {values}".rstrip()


def _taints(table: NodeTable, shape: PodShape) -> Iterator[Filter]:
    """Yield one filter a taint that the shape does not bear, the commonest first in the text."""
    blocking: dict[tuple[str, str, str], list[int]] = {}
    for number in distinct(table.taints):
        for taint in untolerated(table.taint_sets.sets[number], shape.tolerations, HARD_EFFECTS):
            blocking.setdefault(taint, []).append(int(number))
    for taint, numbers in sorted(blocking.items()):
        passes = ~np.isin(table.taints, np.array(numbers))
        yield Filter("Taint", _taint_words(taint), passes)


def _taint_words(taint: tuple[str, str, str]) -> str:
    if taint[0] == SIMULATED_TAINT:
        return SIMULATED
    return f"tainted {format_taint(taint)}"
