"""The network as layouts see it: how fast each tier is, and which domains nodes stand in."""

from __future__ import annotations

import numpy as np

from lockstep.api.names import HOSTNAME_LABEL
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.topology import NO_DOMAIN, Tiers
from lockstep.scheduler.core.ranks.communication_cost import Links
from lockstep.scheduler.core.util.array_types import IntArray

INSIDE, AROUND = 450.0, 50.0
"""GB/s from a GPU to others of its node (or NVLink domain), and to others in the tier around."""
HOP = 5e-6
"""Seconds for a domain that a group touches in the narrowest tier; twice that in each wider."""
GIGA = 1e9


def links_of(tiers: Tiers) -> Links:
    """Return how slow the network is between and inside the domains of each tier.

    What a Topology does not state is half the bandwidth of the next narrower tier. Where its
    narrowest tier is not the node, nodes are one more tier.
    """
    stated = [index.tier.bandwidth for index in tiers.indices]
    nvlink = [index.tier.nvlink for index in tiers.indices]
    if not ends_in_nodes(tiers):
        stated, nvlink = [*stated, None], [*nvlink, False]
    speeds = [stated[-1] or INSIDE]
    for own, linked in zip(reversed(stated[:-1]), reversed(nvlink[:-1]), strict=True):
        usual = INSIDE if linked else min(AROUND, speeds[-1] / 2)
        speeds.append(own or usual)
    speeds.append(min(AROUND, speeds[-1] / 2))
    slowness = 1 / (np.array(speeds[::-1]) * GIGA)
    hops = np.array([HOP * 2.0**wider for wider in range(len(stated))][::-1])
    return Links(slowness, hops)


def ends_in_nodes(tiers: Tiers) -> bool:
    """Return whether the narrowest tier is the node."""
    return bool(tiers.indices) and tiers.indices[-1].label == HOSTNAME_LABEL


def domain_ids(table: NodeTable, rows: IntArray) -> IntArray:
    """Return by tier the domains in which *rows* stand, as ``links_of`` counts the tiers.

    A node that a tier does not know stands there in a domain like its narrower one.
    """
    found = [rows.astype(np.int64)]
    indices = table.tiers.indices
    for index in reversed(indices[:-1] if ends_in_nodes(table.tiers) else indices):
        ids = index.ids[rows].astype(np.int64)
        found.append(np.where(ids == NO_DOMAIN, len(index) + found[-1], ids))
    return np.stack(found[::-1])
