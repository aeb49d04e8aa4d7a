"""The statuses of pods on simulated nodes."""

from __future__ import annotations

from typing import Any

from lockstep.api.containers import Container
from lockstep.api.core import Pod, PodSpec, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.timestamp import show
from lockstep.api.wire import convert
from lockstep.nodes.simulated import statuses

NOW = 1_800_000_000.0
BOUND = Condition(type="PodScheduled", status="True", last_transition_time=show(NOW - 9))


def pod(*conditions: Condition) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="s", uid="u"),
        spec=PodSpec(
            containers=[Container(name="main", image="i"), Container(name="helper", image="j")],
            init_containers=[
                Container(name="first"),
                Container(name="sidecar", restart_policy="Always"),
            ],
        ),
        status=PodStatus(conditions=list(conditions)),
    )


def status(told: dict[str, Any]) -> PodStatus:
    return convert(told, PodStatus)


def test_a_pod_that_runs_has_everything_that_a_kubelet_writes() -> None:
    patch = statuses.running(pod(BOUND), address="10.128.0.1", host="10.0.0.1", now=NOW)
    found = status(patch)
    assert (found.phase, found.pod_ip, found.host_ip) == ("Running", "10.128.0.1", "10.0.0.1")
    assert found.start_time == show(NOW)
    assert {c.type: c.status for c in found.conditions} == dict.fromkeys(
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"],
        "True",
    )
    assert [(c.name, c.ready, c.state.running is not None) for c in found.container_statuses] == [
        ("main", True, True),
        ("helper", True, True),
    ]
    first, sidecar = found.init_container_statuses
    assert first.state.terminated is not None
    assert first.state.terminated.exit_code == 0
    assert sidecar.state.running is not None


def test_a_pod_that_fails_says_how_and_why() -> None:
    started = status(statuses.running(pod(BOUND), address="a", host="h", now=NOW)).conditions
    patch = statuses.ended(
        pod(*started), exit_code=137, why="asked to fail", started_at=NOW, now=NOW + 5
    )
    found = status(patch)
    assert (found.phase, found.message) == ("Failed", "asked to fail")
    ends = [one.state.terminated for one in found.container_statuses]
    assert [(end.exit_code, end.reason) for end in ends if end] == [
        (137, "Error"),
        (0, "Completed"),
    ]
    assert {end.finished_at for end in ends if end} == {show(NOW + 5)}
    held = {c.type: (c.status, c.last_transition_time) for c in found.conditions}
    assert held["Ready"] == ("False", show(NOW + 5))
    assert held["Initialized"] == ("True", show(NOW))
    assert "PodScheduled" not in held
    assert not any(one.ready for one in found.container_statuses)


def test_the_reason_of_a_condition_goes_when_it_holds_again() -> None:
    first = statuses.ended(pod(), exit_code=1, why="asked", started_at=NOW, now=NOW)
    again = statuses.running(pod(*status(first).conditions), address="a", host="h", now=NOW + 1)
    reasons = {c["type"]: c.get("reason", "none") for c in again["conditions"]}
    assert reasons["Ready"] is reasons["ContainersReady"] is None
    assert reasons["Initialized"] == "none"


def test_a_pod_that_succeeds_has_no_message() -> None:
    patch = statuses.ended(pod(), exit_code=0, why="", started_at=NOW, now=NOW + 5)
    assert patch["phase"] == "Succeeded"
    assert patch["message"] is None


def test_no_two_pods_have_one_address_at_a_time() -> None:
    addresses = statuses.PodAddresses()
    addresses.keep("old", "10.128.0.2")
    given = [addresses.of("a"), addresses.of("b"), addresses.of("a")]
    assert given == ["10.128.0.1", "10.128.0.3", "10.128.0.1"]
    addresses.release("a")
    assert addresses.of("c") not in {"10.128.0.2", "10.128.0.3"}
