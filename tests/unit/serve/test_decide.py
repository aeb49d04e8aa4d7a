"""Which versions of a service serve, by what is on record and which replicas are ready."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import ControllerRevision, Pod
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import REVISION_LABEL
from lockstep.api.serving import ROUTES
from lockstep.api.wire import convert
from lockstep.compat.kserve.objects import ComponentStatus, InferenceService, Spec, Status
from lockstep.compat.kserve.problem import Problem
from lockstep.serve.core import revisions
from lockstep.serve.core.decide import decide, translate
from lockstep.serve.core.world import Create, Seen

META = ObjectMeta(name="asked", namespace="default", uid="u")


def service(word: str, *, rolled_out: str = "") -> InferenceService:
    container = {"name": "kserve-container", "image": "none", "command": ["serve", word]}
    spec = Spec(predictor={"containers": [container], "canaryTrafficPercent": 20})
    told = ComponentStatus(latest_rolledout_revision=rolled_out)
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
