"""CronWorkflows and their time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.api.timestamp import show
from lockstep.pipelines.core.calendar import wish

NOON = datetime.fromisoformat("2026-02-27T12:00:00+00:00").timestamp()


def cron(last: float, **spec: Any) -> AnyObject:
    return AnyObject(
        metadata=ObjectMeta(name="nightly", namespace="default", uid="u"),
        spec={"schedule": "0 * * * *", "workflowSpec": {"entrypoint": "a"}, **spec},
        status={"lastScheduledTime": show(last)},
    )


def workflow(name: str, phase: str, end: float = 0.0) -> AnyObject:
    status = {"phase": phase, "finishedAt": show(end)}
    return AnyObject(metadata=ObjectMeta(name=name, namespace="default"), status=status)


def test_a_workflow_is_made_at_its_time_and_once() -> None:
    found = wish(cron(NOON - 3600), [], NOON + 1)
    assert found.make is not None
    assert found.make["metadata"]["name"] == f"nightly-{int(NOON)}"
    assert found.status["lastScheduledTime"] == show(NOON)
    again = wish(cron(NOON), [], NOON + 2)
    assert (again.make, again.again) == (None, NOON + 3600)


@pytest.mark.parametrize(
    ("spec", "now", "made"),
    [
        ({}, NOON + 600, False),
        ({"startingDeadlineSeconds": 900}, NOON + 600, True),
        ({"suspend": True}, NOON + 1, False),
    ],
)
def test_a_missed_time_is_made_up_for_within_its_limit(
    spec: dict[str, Any], now: float, made: bool
) -> None:
    assert (wish(cron(NOON - 3600, **spec), [], now).make is not None) == made


@pytest.mark.parametrize(
    ("policy", "made", "deleted"),
    [("Allow", True, []), ("Forbid", False, []), ("Replace", True, ["running"])],
)
def test_a_policy_says_what_becomes_of_one_that_runs(
    policy: str, made: bool, deleted: list[str]
) -> None:
    there = [workflow("running", "Running")]
    found = wish(cron(NOON - 3600, concurrencyPolicy=policy), there, NOON + 1)
    assert (found.make is not None) == made
    assert [one.metadata.name for one in found.delete] == deleted


def test_ends_beyond_the_limits_are_deleted_the_oldest_first() -> None:
    there = [workflow(f"good-{i}", "Succeeded", NOON + i) for i in range(5)]
    there += [workflow(f"bad-{i}", "Failed", NOON + i) for i in range(2)]
    found = wish(cron(NOON), there, NOON + 1)
    assert sorted(one.metadata.name for one in found.delete) == ["bad-0", "good-0", "good-1"]


def test_a_wrong_schedule_is_told() -> None:
    found = wish(cron(NOON, schedule="nonsense"), [], NOON + 1)
    assert found.again is None
    assert "five fields" in found.status["conditions"][0]["message"]


@pytest.mark.parametrize("field", ["when", "stopStrategy"])
def test_what_is_not_served_makes_no_workflow(field: str) -> None:
    found = wish(cron(NOON - 3600, **{field: "x"}), [], NOON + 1)
    assert found.make is None
    assert f"spec.{field}" in found.status["conditions"][0]["message"]
