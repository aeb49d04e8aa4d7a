"""The shell around InferenceGraphs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import SERVICES
from lockstep.api.merge import difference
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.api.wire import to_builtins
from lockstep.compat.kserve.objects import INFERENCE_GRAPHS, INFERENCE_SERVICES
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import Conflict, NotFound
from lockstep.kube.informer import Informer
from lockstep.serve.carrying_out import carry_out
from lockstep.serve.core.graph_objects import SeenGraph, decide_graph
from lockstep.serve.core.load import alive

log = logging.getLogger(__name__)


@dataclass
class GraphController:
    """Gives each graph its route, and tells whether its services can be asked."""

    client: Client
    caches: Mapping[Resource[Any], Informer[Any]]
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the graph at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        namespace, name = key
        graph = self.caches[INFERENCE_GRAPHS].get(namespace, name)
        if graph is None or graph.metadata.deletion_timestamp is not None:
            return None
        services = self.caches[INFERENCE_SERVICES]
        seen = SeenGraph(
            graph,
            {one.metadata.name: one for one in services if one.metadata.namespace == namespace},
            self.caches[ROUTES].get(namespace, name),
            self.caches[SERVICES].get(namespace, name),
            alive(self.caches[ROUTERS], self.clock()),
        )
        status, actions = decide_graph(seen, self.clock())
        try:
            for action in actions:
                await carry_out(self.client, namespace, action)
            if patch := difference(to_builtins(graph.status), to_builtins(status)):
                await self.client.patch(
                    INFERENCE_GRAPHS, name, {"status": patch}, namespace, subresource="status"
                )
        except (Conflict, NotFound) as error:
            log.debug("%s: %s", key, error)
            return 0.1
        return None
