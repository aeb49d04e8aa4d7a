"""What leads to a service: its route, and its name inside the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.api.core import SERVICES
from lockstep.api.merge import difference
from lockstep.api.names import LEADS_TO_ANNOTATION, ROUTE_LABEL, SYSTEM_NAMESPACE
from lockstep.api.serving import ROUTER_SERVICE, ROUTES, Backend, Router, RouteSpec
from lockstep.api.wire import to_builtins
from lockstep.compat.kserve.translate import Component
from lockstep.serve.core.traffic import Split
from lockstep.serve.core.world import Action, Change, Create, Seen

Json = dict[str, Any]


def meta(seen: Seen) -> Json:
    """Return the metadata that whatever belongs to a service begins with."""
    service = seen.service
    owner = {
        "apiVersion": service.api_version,
        "kind": service.kind,
        "name": service.metadata.name,
        "uid": service.metadata.uid,
        "controller": True,
    }
    return {"namespace": service.metadata.namespace, "ownerReferences": [owner]}


def url(seen: Seen) -> str:
    """Return where the service is reached from outside; empty while no router runs."""
    router = first(seen.routers)
    if router is None:
        return ""
    about = seen.service.metadata
    if router.spec.domain:
        scheme = router.spec.scheme
        return f"{scheme}://{about.name}-{about.namespace}.{router.spec.domain}"
    return f"{router.spec.url}/serving/{about.namespace}/{about.name}"


def grpc_url(seen: Seen, port: int) -> str:
    """Return where the service is reached by gRPC; empty where its replicas do not speak it."""
    router = first(seen.routers)
    return router.spec.grpc_address if router is not None and port else ""


def address(seen: Seen) -> str:
    """Return where the service is reached from inside the cluster."""
    about, router = seen.service.metadata, first(seen.routers)
    port = f":{router.spec.port}" if router is not None and router.spec.port != 80 else ""
    return f"http://{about.name}.{about.namespace}.svc.cluster.local{port}"


def first(routers: list[Router]) -> Router | None:
    """Return the router whose addresses are told to users."""
    return min(routers, key=lambda one: one.metadata.name, default=None)


def route(seen: Seen, component: Component, traffic: Split, closing: str) -> Iterator[Action]:
    """Yield what makes the route say how requests are split."""
    name = seen.service.metadata.name
    known = {one.metadata.name: one.data for one in seen.revisions}
    spec = RouteSpec(
        backends=[
            Backend(
                revision=revision,
                weight=weight,
                port=int(known.get(revision, {}).get("port", component.port)),
                grpc_port=int(known.get(revision, {}).get("grpcPort", 0)),
            )
            for revision, weight in sorted(traffic.weights.items())
        ],
        concurrency=component.concurrency,
        timeout=component.timeout,
        probe=component.probe,
        url=url(seen),
        closing=closing,
    )
    wanted = to_builtins(spec)
    if seen.route is None:
        about = {**meta(seen), "name": name, "labels": {ROUTE_LABEL: name}}
        yield Create(ROUTES, {"metadata": about, "spec": wanted})
    elif patch := difference(to_builtins(seen.route.spec), wanted):
        yield Change(ROUTES, name, {"spec": patch})


def name(seen: Seen, about: Json) -> Iterator[Action]:
    """Yield what makes the service's name lead to the routers."""
    service = seen.service.metadata.name
    router = first(seen.routers)
    address = router.spec.address if router is not None else ""
    leads = {LEADS_TO_ANNOTATION: address} if address else {}
    if seen.name is None:
        target = f"{ROUTER_SERVICE}.{SYSTEM_NAMESPACE}.svc.cluster.local"
        body = {
            "metadata": {
                **about,
                "name": service,
                "labels": {ROUTE_LABEL: service},
                "annotations": leads,
            },
            "spec": {"type": "ExternalName", "externalName": target},
        }
        yield Create(SERVICES, body)
    elif leads and seen.name.metadata.annotations.get(LEADS_TO_ANNOTATION) != address:
        yield Change(SERVICES, service, {"metadata": {"annotations": leads}})
