"""When recurring runs are due, and which step kinds end when."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api import timestamp
from lockstep.api.core import AnyObject
from lockstep.api.pipeline import PipelineRun
from lockstep.api.wire import convert
from lockstep.pipelines.core.objects import KINDS
from lockstep.pipelines.core.recurring import wish
from lockstep.pipelines.core.values import evaluate

Json = dict[str, Any]
NOW = timestamp.parse("2026-03-10T10:30:30Z")
CRON = {"cronSchedule": {"cron": "0 */10 * * * *"}}
EACH_MINUTE = {"periodicSchedule": {"intervalSecond": 60}}


def recurring(last: str = "", **spec: Any) -> AnyObject:
    meta = {"name": "r", "namespace": "n", "uid": "u", "creationTimestamp": "2026-03-10T10:00:00Z"}
    status = {"trigger": {"lastTriggeredTime": last}} if last else {}
    return convert({"metadata": meta, "spec": spec, "status": status}, AnyObject)


def run(phase: str) -> PipelineRun:
    body = {"metadata": {"name": "x"}, "spec": {"templates": {}}, "status": {"phase": phase}}
    return convert(body, PipelineRun)


@pytest.mark.parametrize(
    ("obj", "due"),
    [
        (recurring(trigger=CRON), "10:10"),
        (recurring("2026-03-10T10:10:00Z", trigger=CRON), "10:20"),
        (recurring("2026-03-10T10:10:00Z", trigger=CRON, noCatchup=True), "10:30"),
        (recurring("2026-03-10T10:30:00Z", trigger=CRON), ""),
        (recurring(trigger=EACH_MINUTE, noCatchup=True), "10:30"),
        (recurring(trigger=CRON, enabled=False), ""),
        (
            recurring(
                "2026-03-10T10:10:00Z",
                trigger={
                    "cronSchedule": {**CRON["cronSchedule"], "endTime": "2026-03-10T10:15:00Z"}
                },
            ),
            "",
        ),
    ],
)
def test_a_missed_time_is_made_up_unless_disabled(obj: AnyObject, due: str) -> None:
    found = wish(obj, [], NOW).make
    moment = timestamp.parse(f"2026-03-10T{due}:00Z") if due else 0
    assert (found["metadata"]["name"] if found else "") == (f"r-{int(moment)}" if due else "")


def test_no_more_go_on_at_once_than_are_wished() -> None:
    obj = recurring(trigger=CRON, maxConcurrency=1)
    assert wish(obj, [run("Running")], NOW).make is None
    assert wish(obj, [run("Succeeded")], NOW).make is not None


@pytest.mark.parametrize("trigger", [{}, {"cronSchedule": {"cron": "5 * * * * *"}}])
def test_a_trigger_that_makes_no_sense_is_said(trigger: Json) -> None:
    (said,) = wish(recurring(trigger=trigger), [], NOW).status["conditions"]
    assert (said["type"], said["message"][:13]) == ("Error", "spec.trigger:")


ENDS = {
    "SparkApplication": {"applicationState": {"state": "COMPLETED"}},
    "FlinkDeployment": {"jobStatus": {"state": "FINISHED"}},
    "RayJob": {"jobStatus": "SUCCEEDED"},
    "TrainJob": {"conditions": [{"type": "Complete", "status": "True"}]},
    "TFJob": {"conditions": [{"type": "Succeeded", "status": "True"}]},
    "JobSet": {"conditions": [{"type": "Completed", "status": "True"}]},
}


@pytest.mark.parametrize("kind", ENDS)
def test_a_step_of_another_kind_ends_as_its_status_says(kind: str) -> None:
    (known,) = (one for one in KINDS if one.resource.kind == kind)
    begun: Json = {"object": {"metadata": {"generation": 1}, "status": {}}}
    over = {"object": {"metadata": {"generation": 1}, "status": ENDS[kind]}}
    for seen, expected in ((begun, False), (over, True)):
        assert evaluate(known.success, seen) is expected
        assert evaluate(known.failure, seen) is False
