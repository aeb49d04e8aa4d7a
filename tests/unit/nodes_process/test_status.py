"""The status that follows from what is known of a pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.pods import container, ended, make, running

from lockstep.api.wire import convert
from lockstep.nodes.process.facts import ContainerFacts, Exit, Hindrance, PodFacts, Run, Verdict
from lockstep.nodes.process.spec import Pod, PodStatus
from lockstep.nodes.process.status import phase, pod_status, qos_class

BASE = PodFacts(accepted_at=100.0, prepared=True, ip="127.1.2.3")
NEVER, ON_FAILURE = {"restartPolicy": "Never"}, {"restartPolicy": "OnFailure"}


def facts(**containers: ContainerFacts) -> PodFacts:
    return replace(BASE, containers=containers)


def of(pod: Pod, known: PodFacts, now: float = 200.0) -> dict[str, Any]:
    return pod_status(pod, known, "127.0.0.1", now)


@pytest.mark.parametrize(
    ("pod", "known", "wanted"),
    [
        (make(), facts(), "Pending"),
        (make(init=("i",)), facts(i=running()), "Pending"),
        (make(init=("i",)), facts(i=ended(0)), "Pending"),
        (make("a", "b"), facts(a=running()), "Pending"),
        (make("a", "b"), facts(a=running(), b=running()), "Running"),
        (make("a", "b"), facts(a=running(), b=ended(1)), "Running"),
        (make(), facts(main=ended(0)), "Running"),
        (make(), facts(main=ended(1)), "Running"),
        (make(**NEVER), facts(main=ended(0)), "Succeeded"),
        (make(**NEVER), facts(main=ended(1)), "Failed"),
        (make(**ON_FAILURE), facts(main=ended(0)), "Succeeded"),
        (make(**ON_FAILURE), facts(main=ended(1)), "Running"),
        (make("a", "b", **NEVER), facts(a=ended(0), b=ended(2)), "Failed"),
        (make("a", "b", **NEVER), facts(a=ended(0), b=running()), "Running"),
        (make(init=("i",), **NEVER), facts(i=ended(1)), "Failed"),
        (make(init=("i",), **ON_FAILURE), facts(i=ended(1)), "Pending"),
        (make(sidecars=("s",), **NEVER), facts(s=running(), main=ended(0)), "Running"),
        (make(sidecars=("s",), **NEVER), facts(s=ended(143), main=ended(0)), "Succeeded"),
        (make(), replace(facts(main=running()), deleted=True), "Running"),
        (make(), replace(facts(main=ended(143)), deleted=True), "Failed"),
        (make(), replace(facts(main=ended(0)), deleted=True), "Succeeded"),
        (make(), replace(facts(main=running()), verdict=Verdict("r", "m")), "Running"),
        (make(), replace(facts(main=ended(0)), verdict=Verdict("r", "m")), "Failed"),
        (make(), replace(BASE, verdict=Verdict("r", "m", admitted=False)), "Failed"),
    ],
)
def test_phase(pod: Pod, known: PodFacts, wanted: str) -> None:
    assert phase(pod, known) == wanted


CRASHED = ended(1, at=195.0, attempt=3, backoff=40.0)


@pytest.mark.parametrize(
    ("pod", "known", "state", "last"),
    [
        (make(), facts(), {"waiting": {"reason": "ContainerCreating"}}, {}),
        (make(init=("i",)), facts(i=running()), {"waiting": {"reason": "PodInitializing"}}, {}),
        (
            make(),
            replace(BASE, hindrance=Hindrance("ContainerCreating", "no such map", 1.0)),
            {"waiting": {"reason": "ContainerCreating", "message": "no such map"}},
            {},
        ),
        (
            make(),
            facts(main=ContainerFacts(hindrance=Hindrance("CreateContainerConfigError", "m", 1.0))),
            {"waiting": {"reason": "CreateContainerConfigError", "message": "m"}},
            {},
        ),
        (make(), facts(main=running()), {"running": {"startedAt": "1970-01-01T00:01:40Z"}}, {}),
        (
            make(),
            facts(main=CRASHED),
            {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": "back-off 40s restarting failed container in pod p",
                }
            },
            {"terminated": 1},
        ),
        (make(**NEVER), facts(main=CRASHED), {"terminated": 1}, {}),
        (make("main", "b", **NEVER), facts(main=CRASHED, b=running()), {"terminated": 1}, {}),
        (
            make(),
            facts(main=replace(running(1), previous=Run(0, 1.0, 1, Exit(9, finished=2.0)))),
            {"running": {"startedAt": "1970-01-01T00:01:40Z"}},
            {"terminated": 9},
        ),
    ],
)
def test_state_of_a_container(
    pod: Pod, known: PodFacts, state: dict[str, Any], last: dict[str, Any]
) -> None:
    found = of(pod, known)["containerStatuses"][0]

    def brief(one: dict[str, Any]) -> dict[str, Any]:
        return {"terminated": one["terminated"]["exitCode"]} if "terminated" in one else one

    assert (brief(found["state"]), brief(found["lastState"])) == (state, last)


@pytest.mark.parametrize(
    ("exit_", "reason"),
    [
        (Exit(0), "Completed"),
        (Exit(1), "Error"),
        (Exit(137, 9, "OOMKilled"), "OOMKilled"),
        (Exit(128, 0, "StartError", "no such command"), "StartError"),
    ],
)
def test_end_of_a_container_has_a_reason(exit_: Exit, reason: str) -> None:
    known = facts(main=ContainerFacts(run=Run(0, 100.0, 5, exit_)))
    found = of(make(**NEVER), known)["containerStatuses"][0]["state"]["terminated"]
    assert found["reason"] == reason
    assert found["exitCode"] == exit_.code
    assert found.get("signal", 0) == exit_.signal


def conditions(pod: Pod, known: PodFacts) -> dict[str, tuple[str, str, str]]:
    return {
        one["type"]: (one["status"], one.get("reason", ""), one.get("message", ""))
        for one in of(pod, known)["conditions"]
    }


@pytest.mark.parametrize(
    ("pod", "known", "wanted"),
    [
        (
            make("a", "b"),
            facts(a=running(), b=running(ready=False)),
            {
                "Initialized": ("True", "", ""),
                "Ready": ("False", "ContainersNotReady", "containers with unready status: [b]"),
            },
        ),
        (
            make(init=("i", "j")),
            facts(i=ended(0), j=running()),
            {
                "Initialized": (
                    "False",
                    "ContainersNotInitialized",
                    "containers with incomplete status: [j]",
                ),
            },
        ),
        (
            make(),
            facts(main=running()),
            {"Ready": ("True", "", ""), "ContainersReady": ("True", "", "")},
        ),
        (
            make(**NEVER),
            facts(main=ended(0)),
            {"Ready": ("False", "PodCompleted", ""), "Initialized": ("True", "PodCompleted", "")},
        ),
        (make(**NEVER), facts(main=ended(1)), {"Ready": ("False", "PodFailed", "")}),
        (
            make(readinessGates=[{"conditionType": "net"}]),
            facts(main=running()),
            {"ContainersReady": ("True", "", "")},
        ),
    ],
)
def test_conditions(pod: Pod, known: PodFacts, wanted: dict[str, tuple[str, str, str]]) -> None:
    found = conditions(pod, known)
    assert {key: found[key] for key in wanted} == wanted
    assert (found["Ready"][0] == "True") == (
        found["ContainersReady"][0] == "True" and not pod.spec.readiness_gates
    )


def test_others_conditions_stay_and_times_change_only_with_the_status() -> None:
    pod = make()
    before = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "T0"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "T1"},
        {"type": "ContainersReady", "status": "False", "lastTransitionTime": "T2"},
    ]
    import msgspec

    pod = msgspec.structs.replace(pod, status=convert({"conditions": before}, PodStatus))
    found = {one["type"]: one for one in of(pod, facts(main=running()))["conditions"]}
    assert found["PodScheduled"] == before[0]
    assert found["Ready"]["lastTransitionTime"] == "T1"
    assert found["ContainersReady"]["lastTransitionTime"] == "1970-01-01T00:03:20Z"


def test_status_holds_no_null_inside_lists() -> None:
    found = of(make("a", "b", init=("i",)), facts(i=ended(0), a=running(), b=CRASHED))

    def nulls(tree: Any) -> bool:
        if isinstance(tree, dict):
            return any(nulls(value) for value in tree.values())
        return tree is None or (isinstance(tree, list) and any(map(nulls, tree)))

    assert not any(nulls(value) for value in found.values() if isinstance(value, list))


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
    ],
)
def test_quality_of_service(resources: list[dict[str, Any]], wanted: str) -> None:
    containers = [container(f"c{n}", resources=one) for n, one in enumerate(resources)]
    assert qos_class(make(containers=containers)) == wanted


@pytest.mark.parametrize(
    ("pod", "known", "told"),
    [
        (make(**NEVER), facts(main=ended(143)), True),
        (make(**NEVER), facts(main=ended(0)), False),  # it made its end in time
        (make(**NEVER), facts(main=running()), False),
        (make(), facts(main=ended(143)), False),  # runs again when the node is back
    ],
)
def test_a_pod_that_fails_because_the_node_stops_says_so(
    pod: Pod, known: PodFacts, told: bool
) -> None:
    stopped = of(pod, replace(known, disrupted="the node was told to stop"))
    told_of = {c["type"]: c for c in stopped["conditions"]}.get("DisruptionTarget")
    assert (told_of is not None) == told
    assert "DisruptionTarget" not in {c["type"] for c in of(pod, known)["conditions"]}
    if told_of:
        assert (told_of["status"], told_of["reason"]) == ("True", "TerminationByKubelet")
