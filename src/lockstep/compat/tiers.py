"""Which tiers of the Topology other systems mean: by a label of nodes, or by a HyperNode's tier."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from lockstep.api.names import GROUP, VERSION
from lockstep.api.topology import DEFAULT_TOPOLOGY
from lockstep.api.wire import Json, to_builtins
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.translation import Look, Refused, Strict

TOPOLOGY: Final = ForeignKind(GROUP, VERSION, "Topology", "topologies", namespaced=False)
"""Ours, where it is looked up."""


class NetworkTopology(Strict, frozen=True):
    """How close together the pods must or should be, by tiers of HyperNodes."""

    mode: Literal["hard", "soft", ""] = "hard"
    highest_tier_allowed: Annotated[int, Meta(ge=1)] | None = None
    highest_tier_name: str = ""


def by_hypernodes(wish: NetworkTopology | None) -> Json | None:
    """Return the *wish* of Volcano as ours."""
    if wish is None:
        return None
    tier = wish.highest_tier_name
    if not tier and wish.highest_tier_allowed is not None:
        tier = f"tier-{wish.highest_tier_allowed}"
    if not tier:
        return {"preferred": "tier-1"}
    return {"preferred" if wish.mode == "soft" else "required": tier}


def by_labels(look: Look, **labels: tuple[str, str]) -> Json | None:
    """Return a wish for tiers, ``required`` or ``preferred``, each said as a field and its label.

    Raises:
        Refused: for a label of nodes that no tier of the Topology has.
    """
    name = DEFAULT_TOPOLOGY.metadata.name
    found = look(TOPOLOGY, "", name)
    spec = found.spec if found is not None else to_builtins(DEFAULT_TOPOLOGY.spec)
    tiers = {tier["label"]: tier["name"] for tier in spec["tiers"]}
    wish: Json = {}
    for kind, (at, label) in labels.items():
        if label and label not in tiers:
            remedy = f"add a tier of this label to the Topology {name}; it has: {', '.join(tiers)}"
            raise Refused(at, label, remedy)
        if label:
            wish[kind] = tiers[label]
    return wish or None
