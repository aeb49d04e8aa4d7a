"""What a kernel needs next."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from lockstep.api import timestamp
from lockstep.api.core import PODS, Pod, PodSpec, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.notebooks import Environment, EnvironmentSpec, Idle, Kernel, KernelSpec
from lockstep.api.notebooks import KernelStatus as Status
from lockstep.notebooks.core.kernel_state import Park, Report, SeenKernel, Settings
from lockstep.notebooks.core.kernels import decide
from lockstep.runtime.actions import Create, Delete, Note

NOW = timestamp.parse("2026-11-23T12:00:00Z")
ABOUT = ObjectMeta(name="k", namespace="team", uid="kernel-uid")
WORKS = Report(ready=True, info={"implementation": "ipython"})
RUNS = Status(phase="Running", pod_uid="pod-uid", address="10.0.0.1:8890")


def pod(phase: str = "Running", **more: Any) -> Pod:
    status = PodStatus(phase=phase, pod_ip="10.0.0.1", **more)
    about = ObjectMeta(name="kernel-k", namespace="team", uid="pod-uid")
    return Pod(metadata=about, spec=PodSpec(node_name="n"), status=status)


def seen(status: Status, *, wake: str = "", idle: Idle | None = None, **more: Any) -> SeenKernel:
    spec = KernelSpec(environment="gpu", wake=wake)
    environment = Environment(
        metadata=ObjectMeta(name="gpu", namespace="team"),
        spec=EnvironmentSpec(resources={"nvidia.com/gpu": 1}, idle=idle or Idle()),
    )
    kernel = Kernel(metadata=ABOUT, spec=spec, status=status)
    return SeenKernel(kernel, environment=environment, **more)


def kinds(world: SeenKernel) -> tuple[str, list[type]]:
    found = decide(world, Settings(), NOW)
    return found.status.phase, [type(one) for one in found.actions]


@pytest.mark.parametrize(
    ("rule", "world", "phase", "actions"),
    [
        ("a new kernel gets a pod", seen(Status()), "Waiting", [Create]),
        ("a parked one rests", seen(Status(phase="Parked")), "Parked", []),
        (
            "a parked one that is woken gets a pod",
            seen(Status(phase="Parked", woken="a"), wake="b"),
            "Waiting",
            [Create],
        ),
        ("one whose pod went is lost", seen(RUNS), "Lost", []),
        ("one whose pod failed is lost", seen(RUNS, pod=pod("Failed")), "Lost", [Delete, Note]),
        ("an unreachable one goes on", seen(RUNS, pod=pod()), "Running", []),
        ("one that answers runs", seen(Status(), pod=pod(), report=WORKS), "Running", []),
        (
            "one that parked gives its pod back",
            seen(RUNS, pod=pod(), report=Report(parked={"generation": 1})),
            "Parked",
            [Delete, Note],
        ),
        (
            "a decision is carried out after a crash",
            seen(replace(RUNS, phase="Parked"), pod=pod(), report=WORKS),
            "Parked",
            [Delete],
        ),
        (
            "one that cannot be restored fails",
            seen(Status(), pod=pod(), report=Report(failure="not signed")),
            "Failed",
            [Delete, Note],
        ),
    ],
)
def test_next_step(rule: str, world: SeenKernel, phase: str, actions: list[type]) -> None:
    assert kinds(world) == (phase, actions), rule


@pytest.mark.parametrize(
    ("idle_for", "idle", "expected"),
    [
        (1799.0, Idle(), []),
        (1801.0, Idle(), [Park()]),
        (1801.0, Idle(action="Stop"), [Park(drop=True)]),
        (99999.0, Idle(action="Keep"), []),
    ],
)
def test_idle_kernel_is_parked_as_its_environment_says(
    idle_for: float, idle: Idle, expected: list[Park]
) -> None:
    world = seen(RUNS, idle=idle, pod=pod(), report=replace_report(idle_for))
    actions = decide(world, Settings(), NOW).actions
    assert [one for one in actions if isinstance(one, Park)] == expected


def replace_report(idle_for: float) -> Report:
    return Report(ready=True, idle_for=idle_for)


def test_user_is_warned_twice_and_once_each() -> None:
    status, said = RUNS, []
    for idle_for in (0.0, 1195.0, 1201.0, 1300.0, 1681.0, 1750.0):
        world = seen(status, pod=pod(), report=replace_report(idle_for))
        found = decide(world, Settings(), NOW)
        status = found.status
        said += [one.message for one in found.actions if isinstance(one, Note)]
    assert said == [
        "it idles: in 9m59s its state is kept and its place given back",
        "it idles: in 1m59s its state is kept and its place given back",
    ]


@pytest.mark.parametrize(("until", "kept"), [("13:00:00", True), ("11:59:00", False)])
def test_user_may_put_parking_off(until: str, kept: bool) -> None:
    world = seen(RUNS, pod=pod(), report=replace_report(4000.0))
    spec = replace(world.kernel.spec, keep_until=f"2026-11-23T{until}Z")
    world = SeenKernel(replace(world.kernel, spec=spec), world.pod, world.report, world.environment)
    parks = any(isinstance(one, Park) for one in decide(world, Settings(), NOW).actions)
    assert parks is not kept


def test_putting_off_has_a_limit() -> None:
    idle = Idle(after="30m", keep_alive="1h")
    world = seen(RUNS, idle=idle, pod=pod(), report=replace_report(3601.0))
    spec = replace(world.kernel.spec, keep_until="2026-11-24T12:00:00Z")
    world = SeenKernel(replace(world.kernel, spec=spec), world.pod, world.report, world.environment)
    assert Park() in decide(world, Settings(), NOW).actions


def test_state_that_cannot_be_kept_is_asked_once_while_idle() -> None:
    status = replace(RUNS, obstacles=["g (generator): cannot pickle"])
    world = seen(status, pod=pod(), report=replace_report(2000.0))
    found = decide(world, Settings(), NOW)
    assert (found.actions, found.status.obstacles) == ((), status.obstacles)


def test_waiting_kernel_says_why() -> None:
    why = Condition(type="PodScheduled", status="False", message="1 more nvidia.com/gpu is needed")
    waiting = pod("Pending", conditions=[why])
    waiting = replace(waiting, spec=PodSpec())
    found = decide(seen(Status(), pod=waiting), Settings(), NOW)
    assert (found.status.phase, found.status.message) == ("Waiting", why.message)


def test_missing_environment_is_named() -> None:
    world = seen(Status())
    world = SeenKernel(world.kernel)
    found = decide(world, Settings(), NOW)
    assert found.status.phase == "Failed"
    assert "no environment 'gpu' in namespace team" in found.status.message


def test_a_kernels_pod_waits_in_its_queue_with_its_resources() -> None:
    (made,) = decide(seen(Status()), Settings(), NOW).actions
    assert isinstance(made, Create)
    assert made.resource is PODS
    (container,) = made.body["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert made.body["metadata"]["labels"]["lockstep.dev/queue"] == "default"
    assert made.body["spec"]["schedulerName"] == "lockstep"
    assert made.body["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("image", ["", "lockstep/kernel:latest"])
def test_kernel_without_an_image_runs_in_the_installations(image: str) -> None:
    world = seen(Status())
    assert world.environment is not None
    spec = replace(world.environment.spec, image=image)
    world = dataclasses.replace(world, environment=replace(world.environment, spec=spec))

    def container(settings: Settings) -> dict[str, Any]:
        (created,) = decide(world, settings, NOW).actions
        assert isinstance(created, Create)
        (found,) = created.body["spec"]["containers"]
        return dict(found)

    own = container(Settings(kernel_image="registry/lockstep:1"))
    assert own["image"] == "registry/lockstep:1"
    assert "lockstep.notebooks.inside.main" in own["command"]
    there = container(Settings())
    assert there["image"] == "lockstep/kernel:latest"
    assert "command" not in there, "a process node knows it by its table"
