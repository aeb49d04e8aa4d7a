"""The shell around InferenceGraphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import SERVICES
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.compat.kserve.objects import INFERENCE_SERVICES, InferenceGraph
from lockstep.kube.informer import Informer
from lockstep.serve.core.graph_objects import SeenGraph
from lockstep.serve.core.load import alive


@dataclass
class GraphController:
    """Gives each graph its route, and tells whether its services can be asked."""

    caches: Mapping[Resource[Any], Informer[Any]]
    clock: Callable[[], float] = time.time

    async def see(self, graph: InferenceGraph) -> SeenGraph:
        """Return what is known of *graph* and of what it asks."""
        namespace, name = graph.metadata.namespace, graph.metadata.name
        services = self.caches[INFERENCE_SERVICES]
        return SeenGraph(
            graph,
            {one.metadata.name: one for one in services if one.metadata.namespace == namespace},
            self.caches[ROUTES].get(namespace, name),
            self.caches[SERVICES].get(namespace, name),
            alive(self.caches[ROUTERS], self.clock()),
        )
