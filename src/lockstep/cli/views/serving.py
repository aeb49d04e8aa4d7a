"""Tables and pages of inference services."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockstep.api.core import ControllerRevision, Pod
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL
from lockstep.api.serving import RouteLoad, Router
from lockstep.cli.views.table import NAMESPACE, Column, Table, plain, table
from lockstep.cli.views.times import ago
from lockstep.compat.kserve.objects import ComponentStatus, InferenceService
from lockstep.serve.core import pods as replicas

_REASON = Column("Reason", text=True)


def component(service: InferenceService) -> ComponentStatus:
    """Return how the predictor of *service* is."""
    return service.status.components.get("predictor", ComponentStatus())


def ready(service: InferenceService) -> tuple[str, str]:
    """Return whether *service* answers (True, False or Unknown), and why not."""
    found = next((one for one in service.status.conditions if one.type == "Ready"), None)
    return (found.status, found.message) if found is not None else ("Unknown", "")


def traffic(service: InferenceService) -> str:
    """Return the shares of the revisions in words: ``00001 90 %, 00002 10 %``."""
    shares = component(service).traffic
    return ", ".join(
        f"{one['revisionName'].rpartition('-')[2]} {one.get('percent', 100)} %" for one in shares
    )


def of_service(service: InferenceService, pods: Iterable[Pod]) -> list[Pod]:
    """Return the replicas of *service*."""
    meta = service.metadata
    return [
        pod
        for pod in pods
        if pod.metadata.namespace == meta.namespace
        and pod.metadata.labels.get(ROUTE_LABEL) == meta.name
    ]


def service_table(services: Sequence[InferenceService], pods: Sequence[Pod], now: float) -> Table:
    """Return a row for each service."""
    rows = []
    for one in sorted(services, key=lambda o: (o.metadata.namespace, o.metadata.name)):
        alive = [pod for pod in of_service(one, pods) if not replicas.going(pod)]
        up = sum(map(replicas.ready, alive))
        state, why = ready(one)
        rows.append(
            (
                one.metadata.namespace,
                one.metadata.name,
                state,
                f"{up}/{len(alive)}",
                traffic(one),
                one.status.url,
                ago(one.metadata.creation_timestamp, now),
                component(one).release.get("message") or why,
            )
        )
    columns = (NAMESPACE, "Name", "Ready", "Replicas", "Traffic", "URL", "Age", _REASON)
    return table(columns, rows)


def service_page(
    service: InferenceService,
    pods: Sequence[Pod],
    revisions: Sequence[ControllerRevision],
    routers: Sequence[Router],
    now: float,
) -> list[str]:
    """Return all that is worth knowing of a service."""
    state, why = ready(service)
    model = service.status.model_status
    lines = [
        f"Service:   {service.metadata.namespace}/{service.metadata.name}",
        f"Ready:     {state}{': ' + why if why else ''}",
        f"URL:       {service.status.url or '-'}",
        f"Runtime:   {_runtime(service)}",
        f"Model:     {(model.get('states') or {}).get('targetModelState', '-')}",
    ]
    if failed := model.get("lastFailureInfo"):
        lines.append(f"Failure:   {failed.get('reason', '')}: {failed.get('message', '')}")
    if release := component(service).release:
        lines.append(
            f"Release:   {release['revision']}: {release['phase']}, {release['weight']} %; "
            f"{release['message']}"
        )
    load = _load(service, routers)
    lines.append(
        f"Requests:  {load.requests} so far, {load.in_flight} under way, {load.held} held, "
        f"{load.refused} refused"
    )
    shown = [
        *plain(_revisions(service, pods, revisions, load, now)).splitlines(),
    ]
    return [*lines, "", *shown]


def _runtime(service: InferenceService) -> str:
    status = service.status
    return (
        status.serving_runtime_name or status.cluster_serving_runtime_name or "its own containers"
    )


def _load(service: InferenceService, routers: Iterable[Router]) -> RouteLoad:
    key = f"{service.metadata.namespace}/{service.metadata.name}"
    found = [one.status.routes[key] for one in routers if key in one.status.routes]
    answers: dict[str, int] = {}
    failures: dict[str, int] = {}
    for one in found:
        for total, part in ((answers, one.answers), (failures, one.failures)):
            for revision, number in part.items():
                total[revision] = total.get(revision, 0) + number
    return RouteLoad(
        requests=sum(one.requests for one in found),
        refused=sum(one.refused for one in found),
        in_flight=sum(one.in_flight for one in found),
        held=sum(one.held for one in found),
        answers=answers,
        failures=failures,
    )


def _revisions(
    service: InferenceService,
    pods: Sequence[Pod],
    revisions: Sequence[ControllerRevision],
    load: RouteLoad,
    now: float,
) -> Table:
    shares = {one["revisionName"]: one.get("percent", 100) for one in component(service).traffic}
    rows = []
    for one in sorted(revisions, key=lambda o: -o.revision):
        name = one.metadata.name
        mine = [pod for pod in pods if pod.metadata.labels.get(REVISION_LABEL) == name]
        alive = [pod for pod in mine if not replicas.going(pod)]
        rows.append(
            (
                name,
                f"{shares.get(name, 0)} %",
                f"{sum(map(replicas.ready, alive))}/{len(alive)}",
                load.answers.get(name, 0),
                load.failures.get(name, 0),
                ago(one.metadata.creation_timestamp, now),
            )
        )
    return table(("Revision", "Traffic", "Replicas", "Answers", "Failed", "Age"), rows)
