"""What leads to a service: its route, and its name inside the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.api.core import SERVICES
from lockstep.api.merge import difference
from lockstep.api.names import LEADS_TO_ANNOTATION, ROUTE_LABEL, SYSTEM_NAMESPACE
from lockstep.api.serving import ROUTER_SERVICE, ROUTES, Backend, Match, Mirror, Router, RouteSpec
from lockstep.api.wire import Json, to_builtins
from lockstep.compat.kserve.translate import Component
from lockstep.compat.kserve.way import TAG_HEADER, Way
from lockstep.runtime.actions import Action, Change, Create, Delete
from lockstep.serve.core.service_state import Seen
from lockstep.serve.core.traffic import Split


def peers_of(service: str) -> str:
    """Return the name of the Service through which pods of a replica find each other."""
    return f"{service}-peers"


def meta(seen: Seen) -> Json:
    """Return the metadata that all objects of a service begin with."""
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
    namespace = seen.service.metadata.namespace
    if router.spec.domain:
        scheme = router.spec.scheme
        return f"{scheme}://{seen.route_name}-{namespace}.{router.spec.domain}"
    return f"{router.spec.url}/serving/{namespace}/{seen.route_name}"


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
    name, way = seen.route_name, component.way
    latest = traffic.latest
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
        matches=_matches(way, traffic) if latest else [],
        mirror=Mirror(revision=latest, percent=way.mirror) if way.mirror and latest else Mirror(),
        logger=way.logger,
        batcher=way.batcher,
        choice="prefix" if way.choice == "prefix" else "load",
        session=way.session,
        predict=way.predict,
        models=list(way.models),
        prefill=way.prefill,
    )
    wanted = to_builtins(spec)
    if seen.route is None:
        about = {**meta(seen), "name": name, "labels": {ROUTE_LABEL: seen.service.metadata.name}}
        yield Create(ROUTES, {"metadata": about, "spec": wanted})
    elif patch := difference(to_builtins(seen.route.spec), wanted):
        yield Change(ROUTES, name, {"spec": patch})


def _matches(way: Way, traffic: Split) -> list[Match]:
    """Return which requests go to one revision regardless of the weights."""
    found = [
        Match(revision=traffic.latest, header=one.header, cookie=one.cookie, value=one.value)
        for one in way.rules
    ]
    if way.tags:
        tagged = {"latest": traffic.latest, "prev": traffic.rolled_out}
        found += [
            Match(revision=revision, header=TAG_HEADER, value=tag)
            for tag, revision in tagged.items()
        ]
    return found


def peers(seen: Seen, component: Component) -> Iterator[Action]:
    """Yield what gives names to the pods of replicas that are several."""
    if component.workers and seen.peers is None:
        service = seen.service.metadata.name
        labels = {ROUTE_LABEL: service}
        body = {
            "metadata": {**meta(seen), "name": peers_of(service), "labels": labels},
            "spec": {"clusterIP": "None", "selector": labels, "publishNotReadyAddresses": True},
        }
        yield Create(SERVICES, body)


def leftover(seen: Seen) -> Iterator[Action]:
    """Yield what takes away the route of a predictor that no transformer is before any more."""
    if seen.behind is not None:
        about = seen.behind.metadata
        yield Delete(ROUTES, about.name, about.uid)
    if seen.behind_name is not None:
        about = seen.behind_name.metadata
        yield Delete(SERVICES, about.name, about.uid)


def name(seen: Seen, about: Json) -> Iterator[Action]:
    """Yield what makes the service's name lead to the routers."""
    service = seen.route_name
    router = first(seen.routers)
    address = router.spec.address if router is not None else ""
    leads = {LEADS_TO_ANNOTATION: address} if address else {}
    if seen.name is None:
        target = f"{ROUTER_SERVICE}.{SYSTEM_NAMESPACE}.svc.cluster.local"
        body = {
            "metadata": {
                **about,
                "name": service,
                "labels": {ROUTE_LABEL: seen.service.metadata.name},
                "annotations": leads,
            },
            "spec": {"type": "ExternalName", "externalName": target},
        }
        yield Create(SERVICES, body)
    elif leads and seen.name.metadata.annotations.get(LEADS_TO_ANNOTATION) != address:
        yield Change(SERVICES, service, {"metadata": {"annotations": leads}})
