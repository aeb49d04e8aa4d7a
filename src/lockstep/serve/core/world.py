"""What is known of a service, and what is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lockstep.api.core import ControllerRevision, Pod, Service
from lockstep.api.resource import Resource
from lockstep.api.serving import Route, RouteLoad, Router
from lockstep.compat.kserve.objects import InferenceService, ServingRuntime, Status

Json = dict[str, Any]


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

    @property
    def key(self) -> str:
        """Return under which name routers count its load."""
        meta = self.service.metadata
        return f"{meta.namespace}/{meta.name}"

    @property
    def loads(self) -> dict[str, RouteLoad]:
        """Return what each router carries for it."""
        return {
            one.metadata.uid: one.status.routes.get(self.key, RouteLoad()) for one in self.routers
        }


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object."""

    resource: Resource[Any]
    body: Json


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object, if it still is the same."""

    resource: Resource[Any]
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Change:
    """Change an object by a merge patch."""

    resource: Resource[Any]
    name: str
    patch: Json


Action = Create | Delete | Change


@dataclass(frozen=True, slots=True)
class Decision:
    """The service's new status and what is to be done, in this order."""

    status: Status
    actions: list[Action]
