"""Who created a job stands in it as the server knew them, whatever its writer says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.apiserver import creator
from lockstep.apiserver.auth.identity import User

Json = dict[str, Any]
KEY = "lockstep.dev/creator"
JOBS = SimpleNamespace(kind=SimpleNamespace(group="lockstep.dev", plural="trainingjobs"))
MAPS = SimpleNamespace(kind=SimpleNamespace(group="", plural="configmaps"))
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
