"""Whether a job whose model is stated fits the cards that there are, told before it runs out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lockstep.api import quantity
from lockstep.api.core import Node
from lockstep.api.names import GPU, GPU_MODEL_LABEL
from lockstep.api.parallelism import Parallelism
from lockstep.api.wire import Json, convert

CARD_MEMORY: Final = "nvidia.com/gpu.memory"
"""Label of a node: the memory of one of its cards in MiB."""
_MIB: Final = 1 << 20


def too_large(job: Json, nodes: Iterable[Node]) -> str:
    """Return in words that a job's model does not fit a card; empty where it may, or is not known.

    The model is what ``spec.parallelism.model`` says. Experts are not reckoned with.
    """
    spec = job.get("spec") or {}
    if not (spec.get("parallelism") or {}).get("model"):
        return ""
    try:
        split = convert(spec["parallelism"], Parallelism)
    except msgspec.ValidationError:
        return ""  # the API server says what is wrong with it
    roles = spec.get("roles") or []
    card = _largest_card(nodes, _selector(roles))
    if not card or split.model is None or split.expert > 1 or split.model.expert_parameters:
        return ""
    from lockstep.insight.memory import formulas

    model, ranks = split.model, sum(map(_ranks, roles))
    plan = formulas.Plan(
        params=float(quantity.parse(str(model.parameters))),
        layers=model.layers,
        hidden=model.hidden,
        sequence=model.sequence,
        batch=model.micro_batch,
        zero=3 if model.sharded else 0,
        data=split.data or max(1, ranks // (split.tensor * split.pipeline * split.context)),
        tensor=split.tensor,
        pipeline=split.pipeline,
        context=split.context,
        sequence_parallel=split.tensor > 1,
    )
    try:
        memory = formulas.estimate(plan)
    except ValueError:
        return ""
    if memory.likely <= card:
        return ""
    ways = [words for words, _ in formulas.remedies(plan, card)]
    helped = f"; would fit: {', or '.join(ways)}" if ways else ""
    return (
        f"its model likely takes {memory.likely / formulas.GIB:.0f} GiB on a GPU (mixed precision, "
        f"Adam), and the largest card for it has {card / formulas.GIB:.0f} GiB{helped} "
        "(`lockstep estimate --help`)"
    )


def _ranks(role: Json) -> int:
    asked = 0
    for container in role["template"]["spec"].get("containers") or ():
        amounts = container.get("resources") or {}
        given = {**(amounts.get("requests") or {}), **(amounts.get("limits") or {})}
        asked += int(given.get(GPU, 0))
    return int(role.get("replicas") or 1) * max(1, asked)


def _selector(roles: Iterable[Json]) -> Mapping[str, str]:
    """Return the model of card that the job asks for, as a selector of nodes."""
    for role in roles:
        chosen = role["template"]["spec"].get("nodeSelector") or {}
        if GPU_MODEL_LABEL in chosen:
            return {GPU_MODEL_LABEL: chosen[GPU_MODEL_LABEL]}
    return {}


def _largest_card(nodes: Iterable[Node], selector: Mapping[str, str]) -> int:
    """Return the bytes of the largest card; 0 where no node says."""
    found = 0
    for node in nodes:
        labels = node.metadata.labels
        told = labels.get(CARD_MEMORY, "")
        if told.isascii() and told.isdigit() and selector.items() <= labels.items():
            found = max(found, int(told) * _MIB)
    return found
