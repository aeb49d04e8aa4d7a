"""Where a pod's data lies, as wishes of the pod: nodes that have more of its datasets are better.

Nodes carry the share that they have of each dataset as a label, so a dataset at hand is what any
preferred label is: one model for placement, what-if and explain. It leaves a pod waiting only where
no node can have the dataset.
"""

from __future__ import annotations

from typing import Final

import msgspec

from lockstep.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PreferredNodeTerm,
)
from lockstep.api.dataset_cache import NO_CACHE, share_label

LEVELS: Final = (24, 74, 99)
"""Above each of these shares (per cent) a node is better by ``WEIGHT``."""
WEIGHT: Final = 5
"""Of 100, as preferred affinities weigh: what a user prefers in so many words counts more."""
REQUIRED: Final = "fluid.io/dataset.{}.sched"
"""Label of a pod that waits for a node with the dataset, where it says ``required``."""


def with_data_wishes(pod: Pod) -> PodSpec:
    """Return the spec of *pod* with what its datasets make it wish of nodes."""
    spec, meta = pod.spec, pod.metadata
    claims = [one.claim for one in spec.volumes if one.claim]
    if not claims:
        return spec
    affinity = (spec.affinity.node_affinity if spec.affinity else None) or NodeAffinity()
    preferred, required = list(affinity.preferred), affinity.required
    for claim in dict.fromkeys(claims):
        key = share_label(meta.namespace, claim)
        for level in LEVELS:
            above = NodeSelectorRequirement(key, "Gt", [str(level)])
            preferred.append(PreferredNodeTerm(WEIGHT, NodeSelectorTerm([above])))
        required = _also(required, NodeSelectorRequirement(key, "NotIn", [NO_CACHE]))
        if meta.labels.get(REQUIRED.format(claim)) == "required":
            required = _also(required, NodeSelectorRequirement(key, "Exists"))
    wishes = msgspec.structs.replace(affinity, preferred=preferred, required=required)
    return msgspec.structs.replace(spec, affinity=Affinity(wishes))


def _also(given: NodeSelector | None, more: NodeSelectorRequirement) -> NodeSelector:
    """Return *given* where each of its terms has *more* too."""
    terms = given.node_selector_terms if given else [NodeSelectorTerm()]
    return NodeSelector(
        [
            msgspec.structs.replace(one, match_expressions=[*one.match_expressions, more])
            for one in terms
        ]
    )
