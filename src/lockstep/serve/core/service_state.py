"""What is known of a service, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from lockstep.api.core import AnyObject, ControllerRevision, Pod, Service
from lockstep.api.gang import Gang
from lockstep.api.names import GANG_LABEL
from lockstep.api.serving import Route, RouteLoad, Router
from lockstep.api.wire import Json
from lockstep.compat.fluid.objects import Dataset
from lockstep.compat.kserve.objects import InferenceService, ServingRuntime


def replica_of(pod: Pod) -> tuple[str, str]:
    """Return the revision of a pod, and the name of the replica that it is, or is part of."""
    name = pod.metadata.labels.get(GANG_LABEL) or pod.metadata.name
    return name.rpartition("-")[0], name


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is known of a service."""

    service: InferenceService
    runtimes: list[ServingRuntime]
    revisions: list[ControllerRevision]
    pods: list[Pod]
    route: Route | None = None
    name: Service | None = None
    """The Service under whose name it is called from inside the cluster."""
    routers: list[Router] = field(default_factory=list)
    """Those that live."""
    behind: Route | None = None
    """The route of the predictor where a transformer has that of the service."""
    behind_name: Service | None = None
    gangs: list[Gang] = field(default_factory=list)
    peers: Service | None = None
    """The Service that gives names to pods of replicas that are several."""
    templates: Mapping[str, Json] = field(default_factory=dict)
    """Specs of the AnalysisTemplates of its namespace, by name."""
    cached: bool = False
    """Whether models come as Datasets that nodes cache."""
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    """Datasets of its namespace that hold models, by name."""
    local_models: list[AnyObject] = field(default_factory=list)
    """LocalModelCaches of the cluster and of its namespace."""
    beside: bool = False
    """Whether this is the predictor behind a transformer, looked at alone."""

    @property
    def route_name(self) -> str:
        """Return the name of the route."""
        return self.service.metadata.name + ("-predictor" if self.beside else "")

    @property
    def key(self) -> str:
        """Return under which name routers count its load."""
        return f"{self.service.metadata.namespace}/{self.route_name}"

    def of(self, *components: str) -> Seen:
        """Return what is known of some of the components alone; *components* may end with ``*``."""
        name = self.service.metadata.name

        def mine(revision: str) -> bool:
            found = revision.removeprefix(f"{name}-").rpartition("-")[0]
            return any(fnmatchcase(found, one) for one in components)

        return replace(
            self,
            revisions=[one for one in self.revisions if mine(one.metadata.name)],
            pods=[one for one in self.pods if mine(replica_of(one)[0])],
        )

    def predictor(self, *, transformed: bool) -> Seen:
        """Return what is known of the predictor and its canaries alone."""
        found = self.of("predictor", "canary-*")
        if not transformed:
            return found
        return replace(found, beside=True, route=self.behind, name=self.behind_name)

    @property
    def loads(self) -> dict[str, RouteLoad]:
        """Return what each router carries for it."""
        return {
            one.metadata.uid: one.status.routes.get(self.key, RouteLoad()) for one in self.routers
        }
