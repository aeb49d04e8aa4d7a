"""The truth about a service, in the fields of KServe's status that clients wait for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.meta import Condition
from lockstep.api.wire import Json
from lockstep.compat.kserve.objects import ComponentStatus, Status
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.translate import Component
from lockstep.serve.core import pods, rollout
from lockstep.serve.core.service_state import Seen
from lockstep.serve.core.surroundings import address, grpc_url, url
from lockstep.serve.core.traffic import Split

CANARY_CONDITION: Final = "CanaryTrafficServed"


@dataclass(frozen=True, slots=True)
class Standing:
    """What was decided about a service."""

    component: Component
    latest: str
    traffic: Split
    wanted: int
    closing: str
    release: Json
    """How far a release in steps is; empty where there is none."""
    canaries: tuple[tuple[str, int, str, bool], ...] = ()
    """Name, per cent, revision and readiness of each."""
    unread: str = ""
    """Metrics that could not be read, and why."""
    unreadable: pods.Failure | None = None
    """Why its model cannot be read."""
    rollout: Json = field(default_factory=dict)
    """How far replicas are replaced one at a time; empty where they are not."""


def status(seen: Seen, standing: Standing, now: float) -> Status:
    """Return the status of a service that can be served."""
    before = seen.service.status
    old = before.components.get("predictor", ComponentStatus())
    latest = [pod for pod in seen.pods if pods.revision(pod) == standing.latest]
    proven = old.latest_ready_revision == standing.latest or any(map(pods.ready, latest))
    component = _component(seen, standing, old, proven=proven)
    told = _conditions(seen, standing, proven=proven)
    return structs.replace(
        before,
        conditions=dated(before.conditions, told, seen.service.metadata.generation, now),
        components={**before.components, "predictor": component},
        model_status=_model(seen, standing, proven=proven),
        url=url(seen),
        address={"url": address(seen)},
        observed_generation=seen.service.metadata.generation,
        deployment_mode="Standard",
        canary_statuses=[
            {"name": name, "trafficPercent": percent, "revisionName": revision, "ready": good}
            for name, percent, revision, good in standing.canaries
        ],
        **_runtime(standing.component),
    )


def _component(
    seen: Seen, standing: Standing, old: ComponentStatus, *, proven: bool
) -> ComponentStatus:
    return ComponentStatus(
        latest_created_revision=standing.latest,
        latest_ready_revision=standing.latest if proven else old.latest_ready_revision,
        latest_rolledout_revision=standing.traffic.rolled_out,
        previous_rolledout_revision=_previous(standing, old),
        traffic=[
            {"revisionName": name, "percent": weight, "latestRevision": name == standing.latest}
            for name, weight in sorted(standing.traffic.weights.items())
        ],
        release=standing.release,
        rollout=standing.rollout,
        url=url(seen),
        rest_url=url(seen),
        grpc_url=grpc_url(seen, standing.component.grpc_port),
    )


def _previous(standing: Standing, old: ComponentStatus) -> str:
    """Return the revision to which a lower canary share would go back."""
    now, before = standing.traffic.rolled_out, old.latest_rolledout_revision
    promoted = now == standing.latest and before not in ("", now)
    return before if promoted else old.previous_rolledout_revision


def with_transformer(told: Status, seen: Seen, standing: Standing, now: float) -> Status:
    """Return the status *told* with that of the transformer, without which none is ready."""
    old = seen.service.status.components.get("transformer", ComponentStatus())
    latest = [pod for pod in seen.pods if pods.revision(pod) == standing.latest]
    proven = old.latest_ready_revision == standing.latest or any(map(pods.ready, latest))
    _, good, reason, message = next(
        one for one in _conditions(seen, standing, proven=proven) if one[0] == "PredictorReady"
    )
    before = {one.type: one for one in told.conditions}
    ready = before["Ready"]
    shown = [("TransformerReady", good, reason, message)]
    if ready.status == "True" and not good:
        shown.append(("Ready", False, reason, f"the transformer: {message}"))
    kept = [one for one in told.conditions if one.type not in {kind for kind, *_ in shown}]
    generation = seen.service.metadata.generation
    old_ones = seen.service.status.conditions
    known = [one for one in old_ones if one.type in ("TransformerReady", "Ready")]
    fresh = dated(known, shown, generation, now)
    made = [one for one in fresh if one.type in {kind for kind, *_ in shown}]
    component = _component(seen, standing, old, proven=proven)
    return structs.replace(
        told,
        url=url(seen),
        address={"url": address(seen)},
        conditions=sorted([*kept, *made], key=lambda one: one.type),
        components={**told.components, "transformer": component},
    )


def troubled(seen: Seen, problem: Problem, now: float) -> Status:
    """Return the status of a service whose spec cannot be served; what runs goes on."""
    before = seen.service.status
    old = before.components.get("predictor", ComponentStatus())
    serving = [one for one in seen.pods if pods.ready(one)]
    goes_on = bool(old.latest_ready_revision and serving)
    text = str(problem) + (f"; {old.latest_ready_revision} goes on" if goes_on else "")
    told = [
        ("PredictorReady", False, problem.reason, text),
        ("Ready", False, problem.reason, text),
    ]
    failed = {"reason": problem.reason, "message": text}
    return structs.replace(
        before,
        conditions=dated(before.conditions, told, seen.service.metadata.generation, now),
        model_status={
            "transitionStatus": "InvalidSpec",
            "states": {
                "activeModelState": "Loaded" if goes_on else "",
                "targetModelState": "FailedToLoad",
            },
            "lastFailureInfo": failed,
        },
        observed_generation=seen.service.metadata.generation,
    )


def _runtime(component: Component) -> Json:
    of_cluster = component.runtime_of_cluster
    return {
        "serving_runtime_name": "" if of_cluster else component.runtime,
        "cluster_serving_runtime_name": component.runtime if of_cluster else "",
    }


def _serving(seen: Seen, standing: Standing) -> bool:
    return any(
        pods.ready(pod) and pods.revision(pod) in standing.traffic.weights for pod in seen.pods
    )


def _conditions(
    seen: Seen, standing: Standing, *, proven: bool
) -> list[tuple[str, bool, str, str]]:
    """Return type, state, reason and message of each condition."""
    at_zero = standing.wanted == 0 and bool(standing.traffic.rolled_out)
    serving = _serving(seen, standing) or at_zero
    failed = pods.failure(seen.pods) or standing.unreadable
    why, text = "", ""
    if not serving:
        why = failed.reason if failed else "NoReplicaReady"
        text = failed.message if failed else "no replica has answered yet"
    routed = bool(seen.routers)
    no_router = "" if routed else "no router lives; `lockstep router` runs one"
    parts = [
        ("PredictorReady", serving, why, text),
        ("IngressReady", routed, "" if routed else "NoRouter", no_router),
        ("LatestDeploymentReady", proven, "" if proven else "NotReady", "" if proven else text),
    ]
    if release := standing.release:
        done = release["phase"] == "Completed"
        parts.append(("ReleaseCompleted", done, release["phase"], release["message"]))
    if standing.rollout:
        parts.append(("RolloutCompleted", False, "OneAtATime", rollout.told(standing.rollout)))
    elif any(one.type == "RolloutCompleted" for one in seen.service.status.conditions):
        parts.append(("RolloutCompleted", True, "", ""))
    if (share := _share(standing, proven=proven)) is not None:
        parts.append(share)
    elif any(one.type == CANARY_CONDITION for one in seen.service.status.conditions):
        parts.append((CANARY_CONDITION, True, "", ""))
    if standing.canaries:
        late = [name for name, _, _, good in standing.canaries if not good]
        words = f"no replica of {', '.join(late)} has answered" if late else ""
        parts.append(("CanaryPredictorReady", not late, "NotReady" if late else "", words))
    if standing.component.scaling.metrics:
        reason = "FailedGetMetric" if standing.unread else ""
        parts.append(("ScalingActive", not standing.unread, reason, standing.unread))
    if stopped := standing.component.annotations.get("serving.kserve.io/stop") == "true":
        parts.append(("Stopped", stopped, "", ""))
    ok = serving and routed
    return [*parts, ("Ready", ok, why or ("" if routed else "NoRouter"), text or no_router)]


def _share(standing: Standing, *, proven: bool) -> tuple[str, bool, str, str] | None:
    """Return whether the newest revision gets the share that ``canaryTrafficPercent`` states."""
    percent, traffic, latest = standing.component.canary_percent, standing.traffic, standing.latest
    if percent is None or percent == 100:
        return None
    stated = f"spec.predictor.canaryTrafficPercent: {percent}: "
    if traffic.returning:
        text = f"{latest} keeps all requests until a replica of {traffic.returning} is ready"
        return CANARY_CONDITION, False, "Returning", stated + text
    if not proven:
        text = f"{latest} gets its share once one of its replicas is ready"
        return CANARY_CONDITION, False, "NotReady", stated + text
    if traffic.rolled_out == latest:
        text = (
            f"{latest} keeps all requests: no revision on record was rolled out before it; "
            "change the predictor to start a canary"
        )
        return CANARY_CONDITION, False, "NoEarlierRevision", stated + text
    return CANARY_CONDITION, True, "", ""


def dated(
    before: list[Condition],
    told: list[tuple[str, bool, str, str]],
    generation: int,
    now: float,
) -> list[Condition]:
    """Return the conditions, each with the time at which its state last changed."""
    known = {one.type: one for one in before}
    found = []
    for kind, good, reason, message in told:
        state = "True" if good else "False"
        old = known.pop(kind, None)
        since = old.last_transition_time if old and old.status == state else timestamp.show(now)
        found.append(
            Condition(
                type=kind,
                status="True" if good else "False",
                reason="" if good else reason,
                message="" if good else message,
                last_transition_time=since,
                observed_generation=generation,
            )
        )
    return sorted([*found, *known.values()], key=lambda one: one.type)


def _model(seen: Seen, standing: Standing, *, proven: bool) -> Json:
    """Return KServe's ``modelStatus``."""
    target = [pod for pod in seen.pods if pods.revision(pod) == standing.latest]
    alive = [pod for pod in target if not pods.going(pod)]
    failed = pods.failure(alive) or standing.unreadable
    asleep = proven and not alive
    if asleep:
        state = "Standby"
    elif any(map(pods.ready, alive)):
        state = "Loaded"
    elif failed is not None:
        state = "FailedToLoad"
    else:
        state = "Loading" if any(pod.status.pod_ip for pod in alive) else "Pending"
    active = "Loaded" if _serving(seen, standing) else ("Standby" if asleep else "")
    done = {"Loaded": "UpToDate", "Standby": "UpToDate", "FailedToLoad": "BlockedByFailedLoad"}
    found: Json = {
        "transitionStatus": done.get(state, "InProgress"),
        "states": {"activeModelState": active, "targetModelState": state},
        "copies": {
            "totalCopies": len(alive),
            "failedCopies": len(alive) - sum(map(pods.ready, alive)) if failed else 0,
        },
    }
    if failed is not None:
        found["lastFailureInfo"] = {
            "reason": failed.reason,
            "message": failed.message,
            "location": failed.pod,
            "exitCode": failed.exit_code,
        }
    return found
