"""What a pool's nodes cost an hour: as the pool says, else as the price lists do. Pure."""

from __future__ import annotations

from lockstep.api import names, quantity
from lockstep.api.node_pool import NodePool
from lockstep.insight.cost.prices import Prices
from lockstep.insight.history.records import NodeSpan


def node_hour(pool: NodePool, prices: Prices, at: float) -> float | None:
    """Return what a node of a pool costs an hour at a time; None where no price is known."""
    if pool.spec.node_hour is not None:
        return pool.spec.node_hour
    template = pool.spec.template
    gpus = quantity.to_int(template.capacity.get(names.GPU, 0))
    span = NodeSpan(
        uid="",
        name=pool.metadata.name,
        gpus=max(1, gpus),
        start=at,
        spot=pool.spec.spot,
        labels={**template.labels, names.POOL_LABEL: pool.metadata.name},
    )
    (_, _, rate), *_ = prices.rates(span, at, at + 1.0)
    return None if rate is None else rate * span.gpus
