"""Transformers, canaries, replicas of several pods and graphs, as what is done for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.serve_components import run, with_revisions

from lockstep.api.core import PODS, Pod
from lockstep.api.gang import GANGS
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GANG_LABEL, REVISION_LABEL, ROLE_LABEL
from lockstep.api.serving import ROUTES, Router, RouterSpec
from lockstep.api.wire import convert
from lockstep.compat.kserve.objects import (
    GraphSpec,
    InferenceGraph,
    InferenceService,
    Spec,
    Status,
)
from lockstep.runtime.actions import Action, Create, Decision, Delete
from lockstep.serve.core import revisions
from lockstep.serve.core.graph_objects import SeenGraph, decide_graph
from lockstep.serve.core.service_state import Seen

Json = dict[str, Any]
BOX = {"name": "kserve-container", "image": "none", "command": ["serve"]}
ROUTER = Router(metadata=ObjectMeta(name="r"), spec=RouterSpec(url="http://h:1", port=7480))


def service(annotations: dict[str, str] | None = None, **spec: Any) -> InferenceService:
    meta = ObjectMeta(name="svc", namespace="n", uid="u", annotations=annotations or {})
    given = {"predictor": {"containers": [BOX]}, **spec}
    return InferenceService(metadata=meta, spec=Spec(**given), status=Status())


def created(decision: Decision, resource: Any) -> dict[str, Json]:
    return {
        one.body["metadata"]["name"]: one.body
        for one in decision.actions
        if isinstance(one, Create) and one.resource is resource
    }


def deleted(actions: list[Action]) -> set[str]:
    return {one.name for one in actions if isinstance(one, Delete)}


def pod(body: Json, *, ready: bool = True, phase: str = "Running") -> Pod:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"phase": phase, "podIP": "127.0.0.9", "conditions": [condition]}
    return convert({**body, "status": status}, Pod)


def backends(body: Json) -> dict[str, int]:
    return {one["revision"]: one.get("weight", 100) for one in body["spec"]["backends"]}


def test_a_transformer_gets_the_services_route_and_the_predictor_another() -> None:
    given = service(transformer={"containers": [{**BOX, "args": ["--x"]}]})
    seen = with_revisions(Seen(given, [], [], [], routers=[ROUTER]))
    decision = run(seen)
    routes = created(decision, ROUTES)
    assert backends(routes["svc"]) == {"svc-transformer-00001": 100}
    assert backends(routes["svc-predictor"]) == {"svc-predictor-00001": 100}
    made = created(decision, PODS)
    args = made["svc-transformer-00001-0"]["spec"]["containers"][0]["args"]
    assert args[:3] == ["--x", "--model_name", "svc"]
    assert args[args.index("--predictor_host") + 1] == "svc-predictor.n:7480"
    assert made["svc-transformer-00001-0"]["metadata"]["labels"]["component"] == "transformer"


def test_a_service_is_ready_only_with_its_transformer() -> None:
    given = service(transformer={"containers": [BOX]})
    seen = with_revisions(Seen(given, [], [], [], routers=[ROUTER]))
    bodies = created(run(seen), PODS)
    for name, expected in (("svc-predictor-00001-0", "False"), ("", "True")):
        up = [pod(body) for key, body in bodies.items() if name in ("", key)]
        told = {one.type: one for one in run(replace(seen, pods=up)).status.conditions}
        assert told["Ready"].status == expected, told
        assert told["PredictorReady"].status == "True"
        assert told["TransformerReady"].status == expected


def test_a_removed_transformer_takes_its_pods_and_the_second_route() -> None:
    given = service(transformer={"containers": [BOX]})
    seen = with_revisions(Seen(given, [], [], [], routers=[ROUTER]))
    decision = run(seen)
    bodies, routes = created(decision, PODS), created(decision, ROUTES)
    for body in routes.values():
        body["metadata"]["uid"] = body["metadata"]["name"]
    from lockstep.api.serving import Route

    alone = replace(
        seen,
        service=service(),
        pods=[pod(one) for one in bodies.values()],
        route=convert(routes["svc"], Route),
        behind=convert(routes["svc-predictor"], Route),
    )
    alone = with_revisions(alone)
    # While the route still leads to the transformer, it stays.
    assert "svc-transformer-00001-0" not in deleted(run(alone).actions)
    led = convert(
        {**routes["svc"], "spec": {"backends": [{"revision": "svc-predictor-00001"}]}}, Route
    )
    gone = deleted(run(replace(alone, route=led)).actions)
    assert gone == {"svc-transformer-00001-0", "svc-predictor"}


def canary(name: str, percent: int, word: str) -> Json:
    box = {**BOX, "command": ["serve", word]}
    return {"predictor": {"name": name, "containers": [box]}, "trafficPercent": percent}


def test_canaries_get_their_share_once_they_are_ready() -> None:
    given = service(canary=[canary("a", 20, "a"), canary("b", 5, "b")])
    seen = with_revisions(Seen(given, [], [], [], routers=[ROUTER]))
    bodies = created(run(seen), PODS)
    assert set(bodies) == {"svc-predictor-00001-0", "svc-canary-a-00001-0", "svc-canary-b-00001-0"}
    up = [pod(one, ready="canary-b" not in name) for name, one in bodies.items()]
    decision = run(replace(seen, pods=up))
    assert backends(created(decision, ROUTES)["svc"]) == {
        "svc-canary-a-00001": 20,
        "svc-predictor-00001": 80,
    }
    told = {one.type: one.status for one in decision.status.conditions}
    assert (told["Ready"], told["CanaryPredictorReady"]) == ("True", "False")
    assert [one["ready"] for one in decision.status.canary_statuses] == [True, False]


def test_a_canary_that_is_taken_out_ends() -> None:
    given = service(canary=[canary("a", 20, "a")])
    seen = with_revisions(Seen(given, [], [], [], routers=[ROUTER]))
    decision = run(seen)
    from lockstep.api.serving import Route

    up = [pod(one) for one in created(decision, PODS).values()]
    serving = created(run(replace(seen, pods=up)), ROUTES)["svc"]
    routed = convert({**serving, "metadata": {"name": "svc", "namespace": "n"}}, Route)
    after = replace(seen, service=service(), pods=up, route=routed)
    first = run(after)
    change = next(one for one in first.actions if not isinstance(one, Create | Delete))
    assert not deleted(first.actions)
    spec = {"backends": change.patch["spec"]["backends"]}
    led = convert({"metadata": {"name": "svc"}, "spec": spec}, Route)
    assert deleted(run(replace(after, route=led)).actions) == {"svc-canary-a-00001-0"}


SEVERAL = {"containers": [BOX], "workerSpec": {"pipelineParallelSize": 3}}


def several() -> tuple[Seen, dict[str, Json]]:
    seen = with_revisions(Seen(service(predictor=SEVERAL), [], [], [], routers=[ROUTER]))
    decision = run(seen)
    [gang] = created(decision, GANGS).values()
    assert [one["min"] for one in gang["spec"]["groups"]] == [1, 2]
    return seen, created(decision, PODS)


def test_a_replica_of_several_pods_is_a_gang_with_ranks() -> None:
    _, bodies = several()
    head = "svc-predictor-00001-0"
    assert set(bodies) == {head, f"{head}-w1", f"{head}-w2"}
    ranks = {}
    for name, body in bodies.items():
        assert body["metadata"]["labels"][GANG_LABEL] == head
        env = {one["name"]: one["value"] for one in body["spec"]["containers"][0]["env"]}
        ranks[name] = env["LWS_WORKER_INDEX"]
        assert env["LWS_GROUP_SIZE"] == "3"
        assert env["LWS_LEADER_ADDRESS"] == f"{head}.svc-peers.n.svc.cluster.local"
    assert ranks == {head: "0", f"{head}-w1": "1", f"{head}-w2": "2"}
    assert REVISION_LABEL not in bodies[f"{head}-w1"]["metadata"]["labels"]
    assert bodies[f"{head}-w1"]["metadata"]["labels"][ROLE_LABEL] == "workers"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, set()),
        ({"-w1": "Failed"}, {"", "-w1", "-w2"}),
        ({"": "Failed"}, {"", "-w1", "-w2"}),
        ({"-w2": None}, {"", "-w1"}),
        ({"": None}, {"-w1", "-w2"}),
    ],
)
def test_a_replica_of_several_pods_ends_as_a_whole(
    change: dict[str, str | None], expected: set[str]
) -> None:
    seen, bodies = several()
    head = "svc-predictor-00001-0"
    up = [
        pod(one, phase=str(change.get(name.removeprefix(head), "Running")))
        for name, one in bodies.items()
        if change.get(name.removeprefix(head), "Running") is not None
    ]
    decision = run(replace(seen, pods=up))
    assert deleted(decision.actions) == {f"{head}{one}" for one in expected}
    # One in its place has another number until nothing of it is left.
    assert not set(created(decision, PODS)) & {f"{head}{one}" for one in ("", "-w1", "-w2")}


def test_pods_of_a_replica_that_were_not_made_yet_follow() -> None:
    seen, bodies = several()
    head = "svc-predictor-00001-0"
    up = [pod(bodies[head], ready=False, phase="Pending")]
    assert set(created(run(replace(seen, pods=up)), PODS)) == {f"{head}-w1", f"{head}-w2"}


def test_a_service_that_is_stopped_has_no_replica() -> None:
    given = service({"serving.kserve.io/stop": "true"})
    seen = with_revisions(Seen(given, [], [], [], routers=[ROUTER]))
    decision = run(seen, wanted=0)
    assert not created(decision, PODS)
    assert any(one.type == "Stopped" for one in decision.status.conditions)


def graph(*names: str) -> InferenceGraph:
    steps = [{"serviceName": name} for name in names]
    nodes = {"root": {"routerType": "Sequence", "steps": steps}}
    return InferenceGraph(metadata=ObjectMeta(name="g", namespace="n"), spec=GraphSpec(nodes=nodes))


def test_a_graph_is_ready_when_its_services_are() -> None:
    ready = replace_status(service(), "True")
    late = replace_status(service(), "False")
    for services, reason in (
        ({}, "InvalidSpec"),
        ({"svc": late}, "ServicesNotReady"),
        ({"svc": ready}, ""),
        ({"svc": ready, "g": ready}, "InvalidSpec"),
    ):
        status, actions = decide_graph(SeenGraph(graph("svc"), services, routers=[ROUTER]), 0.0)
        [told] = status.conditions
        assert (told.reason, told.status) == (reason, "False" if reason else "True")
        assert bool(actions) is (reason != "InvalidSpec")
    assert status.url == "http://h:1/serving/n/g"


def replace_status(given: InferenceService, ready: str) -> InferenceService:
    from msgspec import structs

    from lockstep.api.meta import Condition

    told = Status(conditions=[Condition(type="Ready", status=ready)])
    return structs.replace(given, status=told)


def test_revisions_are_named_by_their_component() -> None:
    body = revisions.make("svc", [], {}, {}, component="transformer")
    assert body["metadata"]["name"] == "svc-transformer-00001"
