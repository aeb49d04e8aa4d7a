"""Gangs that start with a part of their pods, in groups, and with claims of their own."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.compat.registry import sources
from lockstep.dialects.made import MADE
from lockstep.jobs.validate import problems

Json = dict[str, Any]
BY_KIND = {(s.kind.group, s.kind.kind): s for s in sources()}


def native(version: str, kind: str, spec: Json) -> list[Any]:
    """Return what is made of an object, as objects that no rule of ours refuses."""
    meta = {"name": "one", "namespace": "ns", "uid": "u"}
    obj = convert({"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}, AnyObject)
    found = BY_KIND[version.partition("/")[0], kind].to_native(obj)
    assert found.refusals == ()
    made = [convert(body, MADE[body["kind"]].type) for body in found.objects]
    assert [p for one in made if isinstance(one, TrainingJob) for p in problems(one)] == []
    return made


def pod(**spec: Any) -> Json:
    return {"spec": {"containers": [{"name": "m", "image": "i"}], "restartPolicy": "Never", **spec}}


def volcano(*tasks: Json, **spec: Any) -> list[Any]:
    listed = [{"template": pod(), "name": f"t{i}", **task} for i, task in enumerate(tasks)]
    return native("batch.volcano.sh/v1alpha1", "Job", {"tasks": listed, **spec})


FOUR: Json = {"replicas": 4}
AGAIN = {"action": "RestartJob", "event": "PodFailed"}
EVICTED = {"action": "RestartJob", "event": "PodEvicted"}


@pytest.mark.parametrize(
    ("tasks", "spec", "least"),
    [
        ((FOUR,), {}, [None]),
        ((FOUR,), {"minAvailable": 2}, [2]),
        (({**FOUR, "minAvailable": 3},), {}, [3]),
        (({"replicas": 1}, FOUR), {"minAvailable": 3}, [None, 2]),
        ((FOUR, FOUR), {"minAvailable": 1}, [1, 1]),
        ((FOUR,), {"minAvailable": 2, "policies": [EVICTED]}, [2]),
        ((FOUR,), {"minAvailable": 2, "policies": [AGAIN]}, [None]),
    ],
)
def test_a_volcano_job_starts_with_its_fewest_pods(
    tasks: tuple[Json, ...], spec: Json, least: list[int | None]
) -> None:
    (job,) = volcano(*tasks, **spec)
    assert [role.min for role in job.spec.roles] == least


def test_a_volcano_jobs_volumes_are_claims_of_all_pods() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    there = {"mountPath": "/in", "volumeClaimName": "data"}
    job, made = volcano({}, volumes=[there, {"mountPath": "/out", "volumeClaim": claim}])
    assert (made.metadata.name, made.spec) == ("one-volume-1", claim)
    spec = job.spec.roles[0].template["spec"]
    names = [volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"]]
    assert names == ["data", "one-volume-1"]
    assert [m["mountPath"] for m in spec["containers"][0]["volumeMounts"]] == ["/in", "/out"]


@pytest.mark.parametrize(("policy", "owners"), [("Delete", None), ("Retain", [])])
def test_a_jobsets_claims_go_to_the_pods_that_mount_them(policy: str, owners: Any) -> None:
    mounts = [{"name": "cache", "mountPath": "/cache"}]
    wants = {"spec": {"containers": [{"name": "m", "image": "i", "volumeMounts": mounts}]}}
    jobs = [
        {"name": name, "template": {"spec": {"template": {**pod(), **more}}}}
        for name, more in (("a", wants), ("b", {}))
    ]
    policies = [
        {
            "templates": [{"metadata": {"name": "cache"}, "spec": {"storageClassName": "fast"}}],
            "retentionPolicy": {"whenDeleted": policy},
        }
    ]
    body = {"replicatedJobs": jobs, "volumeClaimPolicies": policies}
    job, claim = native("jobset.x-k8s.io/v1alpha2", "JobSet", body)
    assert claim.metadata.name == "cache-one"
    with_it, without = (role.template["spec"] for role in job.spec.roles)
    assert with_it["volumes"][0]["persistentVolumeClaim"] == {"claimName": "cache-one"}
    assert "volumes" not in without
    source = BY_KIND["jobset.x-k8s.io", "JobSet"]
    meta = {"name": "one", "namespace": "ns"}
    obj = convert({"kind": "JobSet", "metadata": meta, "spec": body}, AnyObject)
    assert source.to_native(obj).objects[1]["metadata"].get("ownerReferences") == owners


def test_kai_sub_groups_are_groups_of_one_gang() -> None:
    near = {"topology": "t", "requiredTopologyLevel": "kubernetes.io/hostname"}
    subs = [
        {"name": "decode"},
        {"name": "leaders", "parent": "decode", "minMember": 1},
        {"name": "workers", "parent": "decode", "minMember": 4, "topologyConstraint": near},
    ]
    (gang,) = native("scheduling.run.ai/v2alpha2", "PodGroup", {"subGroups": subs, "queue": "q"})
    groups = [(g.name, g.min, g.topology and g.topology.required) for g in gang.spec.groups]
    assert groups == [("leaders", 1, None), ("workers", 4, "node")]
    assert gang.spec.groups[0].selector.match_labels == {"kai.scheduler/subgroup-name": "leaders"}
