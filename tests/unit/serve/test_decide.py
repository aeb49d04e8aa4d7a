"""Which versions of a service serve, by what is on record and which replicas are ready."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import PODS, ControllerRevision, Pod
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import REVISION_LABEL
from lockstep.api.serving import ROUTES
from lockstep.api.wire import convert
from lockstep.compat.kserve.objects import ComponentStatus, InferenceService, Spec, Status
from lockstep.compat.kserve.problem import Problem
from lockstep.runtime.actions import Create, Decision
from lockstep.serve.core import revisions
from lockstep.serve.core.decide import decide, translate
from lockstep.serve.core.service_state import Seen
from lockstep.serve.core.status import CANARY_CONDITION

META = ObjectMeta(name="asked", namespace="default", uid="u")


def service(
    word: str, *, rolled_out: str = "", previous: str = "", percent: int | None = 20
) -> InferenceService:
    container = {"name": "kserve-container", "image": "none", "command": ["serve", word]}
    share = {} if percent is None else {"canaryTrafficPercent": percent}
    spec = Spec(predictor={"containers": [container], **share})
    told = ComponentStatus(
        latest_rolledout_revision=rolled_out, previous_rolledout_revision=previous
    )
    components = {"predictor": told} if rolled_out else {}
    return InferenceService(metadata=META, spec=spec, status=Status(components=components))


def revision(number: int, word: str) -> ControllerRevision:
    component = translate(Seen(service(word), [], [], []))
    assert not isinstance(component, Problem)
    body = revisions.make("asked", [], revisions.content(component), {"namespace": "default"})
    body["revision"] = number
    body["metadata"]["name"] = f"asked-predictor-{number:05d}"
    return convert(body, ControllerRevision)


def pod(number: int, *, ready: bool) -> Pod:
    name = f"asked-predictor-{number:05d}"
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    body: dict[str, Any] = {
        "metadata": {"name": f"{name}-0", "labels": {REVISION_LABEL: name}},
        "status": {"phase": "Running", "conditions": [condition]},
    }
    return convert(body, Pod)


@pytest.mark.parametrize(
    ("recorded", "pods", "expected"),
    [
        ("", [], {3: 100}),
        ("", [pod(1, ready=False)], {3: 100}),
        ("", [pod(1, ready=True)], {1: 100}),
        ("", [pod(1, ready=True), pod(2, ready=True)], {2: 100}),
        ("", [pod(1, ready=True), pod(3, ready=True)], {1: 80, 3: 20}),
        ("asked-predictor-00001", [pod(2, ready=True), pod(3, ready=True)], {1: 80, 3: 20}),
        ("asked-predictor-00009", [pod(2, ready=True), pod(3, ready=True)], {2: 80, 3: 20}),
    ],
)
def test_a_version_that_serves_keeps_its_requests(
    recorded: str, pods: list[Pod], expected: dict[int, int]
) -> None:
    known = [revision(1, "a"), revision(2, "b"), revision(3, "c")]
    seen = Seen(service("c", rolled_out=recorded), [], known, pods)
    decision = decide(seen, translate(seen), 1, 0.0)
    [route] = [
        one for one in decision.actions if isinstance(one, Create) and one.resource is ROUTES
    ]
    weights = {one["revision"]: one.get("weight", 100) for one in route.body["spec"]["backends"]}
    assert weights == {f"asked-predictor-{n:05d}": weight for n, weight in expected.items()}


def told_status(decision: Decision[Status]) -> Status:
    assert decision.status is not None
    return decision.status


def canary_condition(status: Status) -> tuple[str, str]:
    found = [one for one in status.conditions if one.type == CANARY_CONDITION]
    return (found[0].status, found[0].reason) if found else ("", "")


@pytest.mark.parametrize(
    ("percent", "previous", "ready", "shares", "told"),
    [
        (20, 1, [1, 2], {1: 80, 2: 20}, ("True", "")),
        (0, 1, [1, 2], {1: 100}, ("True", "")),
        (20, 1, [2], {2: 100}, ("False", "Returning")),
        (20, 0, [2], {2: 100}, ("False", "NoEarlierRevision")),
        (20, 9, [2], {2: 100}, ("False", "NoEarlierRevision")),
        (100, 1, [2], {2: 100}, ("", "")),
        (None, 1, [2], {2: 100}, ("", "")),
    ],
)
def test_lower_canary_share_returns_to_previous_revision(
    percent: int | None,
    previous: int,
    ready: list[int],
    shares: dict[int, int],
    told: tuple[str, str],
) -> None:
    known = [revision(1, "a"), revision(2, "b")]
    before = f"asked-predictor-{previous:05d}" if previous else ""
    asked = service("b", rolled_out=known[1].metadata.name, previous=before, percent=percent)
    seen = Seen(asked, [], known, [pod(number, ready=True) for number in ready])
    decision = decide(seen, translate(seen), 10, 0.0)
    component = told_status(decision).components["predictor"]
    names = {f"asked-predictor-{number:05d}": share for number, share in shares.items()}
    assert {one["revisionName"]: one["percent"] for one in component.traffic} == names
    assert canary_condition(told_status(decision)) == told
    assert component.previous_rolledout_revision == before
    made = [one for one in decision.actions if isinstance(one, Create) and one.resource is PODS]
    started = [
        one for one in made if one.body["metadata"]["name"].startswith(known[0].metadata.name)
    ]
    assert bool(started) == (told[1] == "Returning" or (1 in shares and 10 * shares[1] > 100))


def test_rolled_out_revision_remembers_the_one_before() -> None:
    known = [revision(1, "a"), revision(2, "b")]
    asked = service("b", rolled_out=known[0].metadata.name, percent=None)
    seen = Seen(asked, [], known, [pod(1, ready=True), pod(2, ready=True)])
    component = told_status(decide(seen, translate(seen), 1, 0.0)).components["predictor"]
    assert component.latest_rolledout_revision == known[1].metadata.name
    assert component.previous_rolledout_revision == known[0].metadata.name
