"""Routes by which requests come to replicas, and the routers that carry them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.meta import ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

ROUTER_SERVICE = "lockstep-router"
"""Name of the Service through which pods of a cluster reach the routers."""


class Backend(Wire, frozen=True):
    """Replicas that are alike: the pods of one revision."""

    revision: Annotated[str, Meta(description="Revision label of the pods.")]
    weight: Annotated[int, Meta(ge=0, le=100, description="Per cent of the requests.")] = 100
    port: Annotated[int, Meta(ge=1, le=65535, description="Port of the pods.")] = 8080
    grpc_port: Annotated[
        int, Meta(ge=0, le=65535, description="Port at which they speak gRPC; 0 is none.")
    ] = 0


class HoldQueue(Wire, frozen=True):
    """How much may wait in one router while no replica takes it."""

    requests: Annotated[int, Meta(ge=0, description="Most requests that wait.")] = 1000
    bytes: Annotated[int, Meta(ge=0, description="Most bytes of their bodies.")] = 64 << 20
    seconds: Annotated[int, Meta(ge=1, description="Longest time that one waits.")] = 120


class RouteSpec(Wire, frozen=True):
    """Where requests of a service go."""

    backends: Annotated[
        list[Backend], Meta(description="Revisions that take requests, and how many each.")
    ] = []
    concurrency: Annotated[
        int, Meta(ge=0, description="Most requests that one replica works on; 0 is no limit.")
    ] = 0
    timeout: Annotated[int, Meta(ge=1, description="Seconds until a replica must answer.")] = 60
    probe: Annotated[
        str, Meta(description="Path on which a replica answers 200 once it can serve.")
    ] = ""
    hold: Annotated[HoldQueue, Meta(description="What may wait while no replica takes it.")] = (
        HoldQueue()
    )
    url: Annotated[str, Meta(description="Where the service is reached from outside.")] = ""
    closing: Annotated[
        str,
        Meta(
            description="While set, requests are held; each router says in its status that it has "
            "seen this value, and then the replicas may go."
        ),
    ] = ""


class Route(Wire, frozen=True):
    """The way of requests to the replicas of one service."""

    metadata: ObjectMeta
    spec: RouteSpec = RouteSpec()
    api_version: str = API_VERSION
    kind: str = "Route"


class RouteLoad(Wire, frozen=True):
    """What one router carries on one route; counts only grow while the router lives."""

    requests: Annotated[int, Meta(description="Requests so far.")] = 0
    refused: Annotated[int, Meta(description="Of them, answered 429 or 503 by the router.")] = 0
    busy: Annotated[
        float, Meta(description="Sum over all requests of the seconds each was held or served.")
    ] = 0.0
    in_flight: Annotated[int, Meta(description="Requests that a replica works on now.")] = 0
    held: Annotated[int, Meta(description="Requests that wait for a replica now.")] = 0
    answers: Annotated[dict[str, int], Meta(description="Answers so far, by revision.")] = {}
    failures: Annotated[
        dict[str, int],
        Meta(description="Of them, those with a status of 500 or more, and replicas lost."),
    ] = {}
    closed: Annotated[str, Meta(description="The route's last `closing` that was seen.")] = ""


class RouterSpec(Wire, frozen=True):
    """Where a router listens."""

    url: Annotated[str, Meta(description="Base of the URLs of its services.")]
    domain: Annotated[
        str, Meta(description="Services are also reached as NAME-NAMESPACE.DOMAIN.")
    ] = ""
    address: Annotated[
        str, Meta(description="Address to which the names of services lead inside pods.")
    ] = ""
    port: Annotated[int, Meta(description="Port of that address.")] = 80
    grpc_address: Annotated[
        str, Meta(description="HOST:PORT at which it takes gRPC; empty until a service has it.")
    ] = ""
    scheme: Annotated[
        Literal["http", "https"], Meta(description="How its services are called from outside.")
    ] = "http"


class RouterStatus(Wire, frozen=True):
    """What a router carries."""

    renewed_at: Annotated[str, Meta(description="When it last said that it lives.")] = ""
    routes: Annotated[
        dict[str, RouteLoad], Meta(description="By NAMESPACE/NAME; idle ones are left out.")
    ] = {}


class Router(Wire, frozen=True):
    """One process that carries requests."""

    metadata: ObjectMeta
    spec: RouterSpec
    status: RouterStatus = RouterStatus()
    api_version: str = API_VERSION
    kind: str = "Router"


ROUTER_LIVES = 10.0
"""Seconds without a word after which a router counts as gone."""

ROUTES = Resource(GROUP, VERSION, "routes", "Route", True, Route)
ROUTERS = Resource(GROUP, VERSION, "routers", "Router", True, Router)
