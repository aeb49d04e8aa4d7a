"""The price lists of a cluster, as pools go by them."""

from __future__ import annotations

import time

from lockstep.api.node_pool import NodePool
from lockstep.api.price_list import PRICE_LISTS
from lockstep.insight.cost.prices import read
from lockstep.pools.core.prices import node_hour
from lockstep.runtime.manager import Manager


class Pricing:
    """What nodes of pools cost now."""

    def __init__(self, manager: Manager) -> None:
        self._lists = manager.informer(PRICE_LISTS)

    def node_hour(self, pool: NodePool) -> float | None:
        """Return what a node of a pool costs an hour now; None where no price is known."""
        prices, _ = read(list(self._lists))
        return node_hour(pool, prices, time.time())
