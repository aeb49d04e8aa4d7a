"""Kubeflow's Tensorboard as a Notebook, and its Profile as a Team."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.wire import convert
from lockstep.compat.kubeflow import profile, tensorboard
from lockstep.compat.kubeflow.notebook import Notebook
from lockstep.compat.translation import Refused

Json = dict[str, Any]
ABOUT = {"name": "curves", "namespace": "lab", "uid": "u1"}


def board(logs: str, status: Json | None = None) -> tensorboard.Tensorboard:
    tree = {"metadata": ABOUT, "spec": {"logspath": logs}, "status": status or {}}
    return convert(tree, tensorboard.Tensorboard)


@pytest.mark.parametrize(
    ("logs", "directory", "volumes"),
    [
        ("pvc://results/a/b", "/logs/a/b", [{"claimName": "results"}]),
        ("pvc://results", "/logs", [{"claimName": "results"}]),
        ("pvc://results/", "/logs", [{"claimName": "results"}]),
        ("s3://bucket/runs", "s3://bucket/runs", []),
        ("gs://bucket", "gs://bucket", []),
    ],
)
def test_events_are_read_where_they_are(logs: str, directory: str, volumes: list[Json]) -> None:
    made = tensorboard.notebook(board(logs))
    spec = made["spec"]["template"]["spec"]
    assert f"--logdir={directory}" in spec["containers"][0]["command"]
    assert [one["persistentVolumeClaim"] for one in spec.get("volumes", [])] == volumes
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u1"


@pytest.mark.parametrize("logs", ["", "/etc", "runs", "pvc://", "pvc://claim/../other"])
def test_other_places_are_refused_by_name(logs: str) -> None:
    with pytest.raises(Refused) as refused:
        tensorboard.notebook(board(logs))
    assert refused.value.problem.field == "spec.logspath"


def test_status_tells_each_state_once() -> None:
    shown = board("s3://b")
    ready = convert({"metadata": ABOUT, "status": {"readyReplicas": 1}}, Notebook)
    first = tensorboard.status(shown, None, "", "t1")
    assert first["conditions"] == [{"deploymentState": "Progressing", "lastProbeTime": "t1"}]
    later = tensorboard.status(board("s3://b", first), ready, "", "t2")
    assert [one["deploymentState"] for one in later["conditions"]] == ["Progressing", "Available"]
    assert later["readyReplicas"] == 1
    assert tensorboard.status(board("s3://b", later), ready, "", "t3") == later


def profiled(spec: Json) -> profile.Profile:
    return convert({"metadata": {"name": "vision", "uid": "p1"}, "spec": spec}, profile.Profile)


@pytest.mark.parametrize(
    ("owner", "member"),
    [
        ({"kind": "User", "name": "ana@x.org"}, ("User", "ana@x.org")),
        ({"kind": "Group", "name": "sight"}, ("Group", "sight")),
        ({"kind": "ServiceAccount", "name": "ci"}, ("ServiceAccount", "vision/ci")),
    ],
)
def test_owner_of_a_profile_is_the_teams_admin(owner: Json, member: tuple[str, str]) -> None:
    made = profile.team(profiled({"owner": owner}))
    (only,) = made["spec"]["members"]
    assert (only["kind"], only["name"], only["role"]) == (*member, "Admin")


OWNER = {"owner": {"kind": "User", "name": "ana"}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.owner.name"),
        ({"owner": {"kind": "Robot", "name": "x"}}, "spec.owner.kind"),
        ({**OWNER, "plugins": [{"kind": "AwsIamForServiceAccount"}]}, "spec.plugins[0]"),
        (
            {**OWNER, "resourceQuotaSpec": {"scopes": ["Terminating"]}},
            "spec.resourceQuotaSpec.scopes",
        ),
    ],
)
def test_what_a_team_cannot_honour_is_refused(spec: Json, field: str) -> None:
    with pytest.raises(Refused) as refused:
        profile.team(profiled(spec))
    assert refused.value.problem.field == field
