"""Routes by which requests come to replicas, and the routers that carry them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
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


class Match(Wire, frozen=True):
    """Which requests one revision gets regardless of the weights."""

    revision: Annotated[str, Meta(description="Revision that gets them.")]
    header: Annotated[str, Meta(description="Header that they bear.")] = ""
    cookie: Annotated[str, Meta(description="Cookie that they bear, in place of a header.")] = ""
    value: Annotated[str, Meta(description="Its value; any where left out.")] = ""


class Mirror(Wire, frozen=True):
    """A revision that gets copies of requests; its answers are dropped, but counted."""

    revision: str = ""
    percent: Annotated[int, Meta(ge=0, le=100, description="Of the requests.")] = 0


class Logger(Wire, frozen=True):
    """Where requests and answers are sent as CloudEvents."""

    url: str = ""
    mode: Literal["all", "request", "response"] = "all"
    metadata_headers: Annotated[
        list[str], Meta(description="Headers of the request that go with them.")
    ] = []


class Batcher(Wire, frozen=True):
    """How requests of the v1 protocol are joined; none are where the size is 0."""

    size: Annotated[int, Meta(ge=0, description="Instances with which one is sent.")] = 0
    latency: Annotated[int, Meta(ge=0, description="Milliseconds after which it is.")] = 5000


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
    matches: Annotated[
        list[Match], Meta(description="Requests that one revision gets; the first that fits.")
    ] = []
    mirror: Annotated[Mirror, Meta(description="What copies of requests go to.")] = Mirror()
    logger: Annotated[Logger, Meta(description="Where they are logged.")] = Logger()
    batcher: Annotated[Batcher, Meta(description="How they are joined.")] = Batcher()
    choice: Annotated[
        Literal["load", "prefix"],
        Meta(description="What chooses a replica: its load, or also what it holds of the prompt."),
    ] = "load"
    session: Annotated[
        str, Meta(description="Header whose value keeps requests at one replica.")
    ] = ""
    predict: Annotated[str, Meta(description="Path at which graphs ask for predictions.")] = ""
    models: Annotated[
        list[str], Meta(description="Names of models by which OpenAI's clients choose it.")
    ] = []
    prefill: Annotated[
        str, Meta(description="Route of the same namespace whose replicas read prompts first.")
    ] = ""
    graph: Annotated[
        dict[str, Any], Meta(description="Nodes of an InferenceGraph that is gone through.")
    ] = {}
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


class Route(OwnObject, frozen=True):
    """The way of requests to the replicas of one service."""

    spec: RouteSpec = RouteSpec()
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


class Router(OwnObject, frozen=True):
    """One process that carries requests."""

    spec: RouterSpec
    status: RouterStatus = RouterStatus()
    kind: str = "Router"


ROUTER_LIVES = 10.0
"""Seconds without a word after which a router counts as gone."""

ROUTES = Resource(GROUP, VERSION, "routes", "Route", True, Route)
ROUTERS = Resource(GROUP, VERSION, "routers", "Router", True, Router)
