"""Simulated NodePools as people write them: ``gpu=0..8x8,nodes-per-leaf=4,idle=30s``. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lockstep.api import duration, names
from lockstep.api.core import Taint
from lockstep.api.meta import ObjectMeta
from lockstep.api.node_pool import (
    NodePool,
    NodePoolSpec,
    NodeTemplate,
    PoolDomain,
    PoolProvider,
    SimulatedProvider,
)
from lockstep.nodes.simulated import fleet
from lockstep.nodes.simulated.spec import NodeGroup, SpecError, parse

EXAMPLE = "gpu=0..8x8,nodes-per-leaf=4,idle=30s"
_HEAD = re.compile(r"([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?)=(?:(\d+)\.\.)?(\d+)x(\d+)")
DEFAULTS = {"arrival": "0s", "idle": "1m"}
"""Simulated nodes are there at once, unless ``arrival`` sets a delay."""


def parse_pool(text: str) -> NodePool:
    """Return the pool that *text* describes: NAME=MIN..MAXxGPUS with options.

    Raises:
        SpecError: when it is not one; the message names the option, what was given, the remedy.
    """
    head, *options = text.split(",")
    match = _HEAD.fullmatch(head.strip())
    if match is None:
        raise SpecError(f"{head!r} is not NAME=MIN..MAXxGPUS; write for example {EXAMPLE}")
    name, _, least, most, gpus = match.groups()
    own: dict[str, Any] = {}
    rest = []
    for option in options:
        key, equals, value = option.strip().partition("=")
        if key == "spot" and not equals:
            own["spot"] = True
        elif key in _READERS:
            own[_FIELDS.get(key, key)] = _READERS[key](key, value)
        else:
            rest.append(option)
    if int(least or 0) > int(most):
        raise SpecError(f"{head!r}: {least} to {most} nodes; the first number must not be larger")
    (group,) = parse(",".join([f"{most}x{gpus}", *rest]))
    return NodePool(metadata=ObjectMeta(name=name), spec=_spec(group, int(least or 0), own))


def _duration(key: str, value: str) -> str:
    try:
        duration.parse(value)
    except ValueError as error:
        raise SpecError(f"{key}: {error}") from None
    return value


def _price(key: str, value: str) -> float:
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise SpecError(f"{key} is {value!r}; write what a node costs an hour, such as 98.3")
    return price


_READERS: dict[str, Callable[[str, str], Any]] = {
    "arrival": _duration,
    "idle": _duration,
    "price": _price,
}
_FIELDS = {"price": "node_hour"}


def _spec(group: NodeGroup, least: int, own: dict[str, Any]) -> NodePoolSpec:
    node = next(iter(fleet.fleet([group]).values()))
    places = (names.SPINE_LABEL, names.LEAF_LABEL, names.HOSTNAME_LABEL, names.NODE_KIND_LABEL)
    labels = {key: value for key, value in fleet.labels(node).items() if key not in places}
    per_spine = group.nodes_per_leaf * group.leaves_per_spine
    return NodePoolSpec(
        min=least,
        max=group.nodes,
        template=NodeTemplate(
            capacity=dict(fleet.amounts(group)),
            labels={**labels, names.NODE_KIND_LABEL: "simulated"},
            annotations=fleet.inventory(node),
            taints=[Taint(key=names.SIMULATED_TAINT, effect="NoSchedule")],
        ),
        domains=[
            PoolDomain(label=names.SPINE_LABEL, nodes=per_spine),
            PoolDomain(label=names.LEAF_LABEL, nodes=group.nodes_per_leaf),
        ],
        provider=PoolProvider(simulated=SimulatedProvider()),
        **{**DEFAULTS, **own},
    )
