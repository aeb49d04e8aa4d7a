"""Who created a job stands in it as the server knew them, whatever its writer says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.apiserver import creator
from lockstep.apiserver.auth.identity import User

Json = dict[str, Any]
KEY = "lockstep.dev/creator"
GROUPS = "lockstep.dev/creator-groups"


def kind(group: str, plural: str) -> SimpleNamespace:
    return SimpleNamespace(kind=SimpleNamespace(group=group, plural=plural), storage=plural)


JOBS, MAPS = kind("lockstep.dev", "trainingjobs"), kind("", "configmaps")
PART = "system:serviceaccount:lockstep-system:lockstep-controllers"


@pytest.mark.parametrize(
    ("served", "user", "stated", "kept"),
    [
        (JOBS, "ana", {}, {KEY: "ana"}),
        (JOBS, "ana", {KEY: "ben", "own": "x"}, {KEY: "ana", "own": "x"}),
        (JOBS, "system:serviceaccount:lab:ci", {KEY: "ben"}, {KEY: "system:serviceaccount:lab:ci"}),
        (JOBS, PART, {KEY: "ben"}, {KEY: "ben"}),
        (JOBS, PART, {}, {}),
        (JOBS, "lockstep:controllers", {KEY: "ben"}, {KEY: "ben"}),
        (MAPS, "ana", {KEY: "ben"}, {KEY: "ben"}),
    ],
)
def test_a_job_is_its_creators(served: Any, user: str, stated: Json, kept: Json) -> None:
    obj: Json = {"metadata": {"name": "n", "annotations": dict(stated)}}
    creator.sign(served, User(user), obj)
    assert obj["metadata"]["annotations"] == kept


@pytest.mark.parametrize("user", ["ana", PART])
@pytest.mark.parametrize(
    ("labels", "scheduler", "is_signed"),
    [
        ({}, "lockstep", True),
        ({"lockstep.dev/gang": "g"}, "lockstep", False),
        ({}, "default-scheduler", False),
        (3, "lockstep", True),
    ],
)
def test_pod_without_a_gang_is_its_creators(
    user: str, labels: Any, scheduler: str, *, is_signed: bool
) -> None:
    stated = {KEY: "ben", GROUPS: "night"}
    obj: Json = {
        "metadata": {"name": "n", "labels": labels, "annotations": dict(stated)},
        "spec": {"schedulerName": scheduler},
    }
    creator.sign(kind("", "pods"), User(user, groups=("day", "a\nnight")), obj)
    assert obj["metadata"]["annotations"] == ({KEY: user, GROUPS: "day"} if is_signed else stated)


def test_annotations_that_are_none_are_left_to_be_refused() -> None:
    obj: Json = {"metadata": {"name": "n", "annotations": "x"}}
    creator.sign(JOBS, User("ana"), obj)
    assert obj["metadata"]["annotations"] == "x"


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ({KEY: "ana"}, {KEY: "ben"}, {KEY: "ana"}),
        ({KEY: "ana"}, {}, {KEY: "ana"}),
        ({KEY: "ana"}, {KEY: "ana", "own": "x"}, {KEY: "ana", "own": "x"}),
        ({}, {KEY: "ben", "own": "x"}, {"own": "x"}),
    ],
)
def test_no_change_passes_a_job_to_another_user(before: Json, after: Json, kept: Json) -> None:
    old: Json = {"metadata": {"annotations": before}}
    new: Json = {"metadata": {"annotations": after}}
    creator.keep(JOBS, new, old)
    assert new["metadata"]["annotations"] == kept
