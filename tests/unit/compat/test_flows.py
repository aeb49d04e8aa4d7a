"""A flow of Volcano becomes jobs that come after each other; what is not served is named."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.compat.registry import sources
from lockstep.jobs.validate import problems

Json = dict[str, Any]
FLOW = next(one for one in sources() if one.kind.kind == "JobFlow")
CONTAINER: Json = {"name": "main", "image": "img", "command": ["true"]}
JOB: Json = {"tasks": [{"name": "w", "template": {"spec": {"containers": [CONTAINER]}}}]}


def flow(*steps: Json, **spec: Any) -> AnyObject:
    meta = {"name": "f", "namespace": "team", "uid": "u", "creationTimestamp": "2026-01-01"}
    return convert(
        {
            "apiVersion": "flow.volcano.sh/v1alpha1",
            "kind": "JobFlow",
            "metadata": meta,
            "spec": {"flows": list(steps), **spec},
        },
        AnyObject,
    )


def step(name: str, *before: str, **more: Any) -> Json:
    return {"name": name, "dependsOn": {"targets": list(before), **more}}


def look(kind: Any, namespace: str, name: str) -> AnyObject | None:
    if namespace != "team" or name not in ("load", "train", "wrong"):
        return None
    spec = {**JOB, "plugins": {"hcclrank": []}} if name == "wrong" else JOB
    return convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, AnyObject)


def jobs(obj: AnyObject) -> list[TrainingJob]:
    found = FLOW.to_native(obj, look)
    assert not found.refusals
    return [convert(body, TrainingJob) for body in found.objects]


def test_each_step_is_a_job_after_those_before_it() -> None:
    first, second = jobs(flow(step("load"), step("train", "load")))
    assert (first.metadata.name, first.spec.after) == ("f-load", [])
    assert (second.metadata.name, second.spec.after) == ("f-train", ["f-load"])
    assert second.metadata.labels["volcano.sh/createdByJobFlow"] == "team.f"
    assert not problems(first) + problems(second)


@pytest.mark.parametrize(
    ("steps", "field"),
    [
        ([step("none")], "spec.flows[0].name"),
        ([step("wrong")], "JobTemplate wrong: spec.plugins"),
        ([step("load", "train")], "spec.flows[0].dependsOn.targets"),
        ([step("load"), step("load")], "spec.flows"),
        ([step("load", "train"), step("train", "load")], "spec.flows"),
        ([step("load"), {**step("train"), "patch": {}}], "spec.flows[1].patch"),
        (
            [step("load"), step("train", "load", probe={"tcpSocketList": [{"port": 1}]})],
            "spec.flows[1].dependsOn.probe",
        ),
        (
            [step("load"), step("train", targetsWithStatus=[{"name": "load", "phase": "Running"}])],
            "spec.flows[1].dependsOn.targetsWithStatus[0].phase",
        ),
    ],
)
def test_what_cannot_be_honoured_is_named(steps: list[Json], field: str) -> None:
    found = FLOW.to_native(flow(*steps), look)
    assert not found.objects
    assert [one.field for one in found.refusals] == [field]


@pytest.mark.parametrize(
    ("phases", "state", "lists"),
    [
        ([], "Pending", {}),
        (["Pending", "Pending"], "Pending", {"pendingJobs": ["f-load", "f-train"]}),
        (
            ["Succeeded", "Pending"],
            "Running",
            {"completedJobs": ["f-load"], "pendingJobs": ["f-train"]},
        ),
        (["Succeeded", "Succeeded"], "Succeed", {"completedJobs": ["f-load", "f-train"]}),
        (
            ["Succeeded", "Failed"],
            "Failed",
            {"completedJobs": ["f-load"], "failedJobs": ["f-train"]},
        ),
    ],
)
def test_its_status_is_in_volcanos_words(phases: list[Any], state: str, lists: Json) -> None:
    obj = flow(step("load"), step("train", "load"))
    natives = [
        structs.replace(one, status=structs.replace(one.status, phase=phase))
        for one, phase in zip(jobs(obj), phases, strict=False)
    ]
    status = FLOW.status_of(obj, natives, ())
    assert status["state"] == {"phase": state}
    assert {key: value for key, value in status.items() if key.endswith("Jobs")} == lists
    told = structs.replace(obj, status=status)
    assert FLOW.status_of(told, natives, ()) == status
    assert FLOW.ended(told) == (state in ("Succeed", "Failed"))


def test_jobs_go_after_success_if_the_flow_says_so() -> None:
    done = {"state": {"phase": "Succeed"}, "completedJobs": ["f-load"]}
    kept, gone = flow(step("load")), flow(step("load"), jobRetainPolicy="delete")
    assert not FLOW.drops(structs.replace(kept, status=done))
    over = structs.replace(gone, status=done)
    assert FLOW.drops(over)
    assert FLOW.status_of(over, (), ()) == done
    assert FLOW.status_of(over, jobs(gone), ()) == done  # while they go, one after the other
