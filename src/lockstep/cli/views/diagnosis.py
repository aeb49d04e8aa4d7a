"""A verdict in plain words."""

from __future__ import annotations

from lockstep.api.diagnosis import Diagnosis
from lockstep.cli.views.table import cell


def words(verdict: Diagnosis) -> list[str]:
    """Return what was the matter, where, how sure that is, what to do, and the evidence."""
    lines = [f"{verdict.class_}: {cell(verdict.cause)}"]
    place = verdict.place
    where = [
        *(f"node {name}" for name in place.nodes),
        *(f"rank {rank}" for rank in place.ranks),
        *place.devices,
    ]
    if where:
        lines.append(f"  where: {', '.join(where[:16])}" + (" ..." if len(where) > 16 else ""))
    lines.append(f"  what to do: {verdict.action.replace('_', ' ')}")
    lines.append(f"  confidence: {verdict.confidence:.0%}")
    return [*lines, *(f"  evidence: {cell(line)}" for line in verdict.evidence)]
