"""What each project's own webhook or schema denies is refused here too, at the field it names."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.api.core import AnyObject
from lockstep.api.wire import convert
from lockstep.compat.registry import sources

Json = dict[str, Any]
SAMPLES = Path(__file__).parent / "samples"
BY_KIND = {(s.kind.group, s.kind.kind): s for s in sources()}
POD: Json = {"spec": {"containers": [{"name": "main", "image": "one"}], "restartPolicy": "Never"}}


def volcano(*tasks: Json, **spec: Any) -> Json:
    listed = [{"replicas": 1, "template": POD, **task} for task in tasks]
    return made("batch.volcano.sh/v1alpha1", "Job", {"tasks": listed, **spec})


def made(version: str, kind: str, spec: Json, **meta: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "one", **meta}, "spec": spec}


def sample(which: str, /, **meta: Any) -> Json:
    body: Json = yaml.safe_load((SAMPLES / f"{which}.yaml").read_text())
    return {**body, "metadata": {**body["metadata"], **meta}}


def changed(name: str, *path: str | int, to: Any) -> Json:
    """Return the sample *name* with another value at *path*."""
    body = sample(name)
    at: Any = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = copy.deepcopy(to)
    return body


def jobset(*jobs: Json, **spec: Any) -> Json:
    template = {"spec": {"completions": 2, "parallelism": 2, "template": POD}}
    listed = [{"template": template, **job} for job in jobs]
    return made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": listed, **spec})


def cluster_queue(*flavors: Json, covered: list[str] | None = None, **spec: Any) -> Json:
    groups = [{"coveredResources": covered or ["cpu"], "flavors": list(flavors)}]
    return made("kueue.x-k8s.io/v1beta2", "ClusterQueue", {"resourceGroups": groups, **spec})


def flavor(name: str = "f", **amounts: Any) -> Json:
    return {"name": name, "resources": [{"name": "cpu", "nominalQuota": 1, **amounts}]}


def volcano_queue(**spec: Any) -> Json:
    return made("scheduling.volcano.sh/v1beta1", "Queue", spec)


def resource_flavor(**spec: Any) -> Json:
    return made("kueue.x-k8s.io/v1beta2", "ResourceFlavor", spec)


_RESTART = {"event": "PodFailed", "action": "RestartJob"}
DENIED: list[tuple[str, Json]] = [
    ("spec.tasks[1].name", volcano({"name": "a"}, {"name": "a"})),
    ("spec.tasks[0].name", volcano({"name": "a" * 64})),
    ("spec.tasks", volcano()),
    ("spec.policies[1].event", volcano({}, policies=[_RESTART, _RESTART])),
    (
        "spec.tasks[0].policies[1].event",
        volcano({"policies": [_RESTART, {**_RESTART, "action": "AbortJob"}]}),
    ),
    ("spec.policies[0].event", volcano({}, policies=[{**_RESTART, "event": "*"}, _RESTART][:2])),
    ("spec.policies[0].event", volcano({}, policies=[{"action": "AbortJob"}])),
    ("spec.policies[0].exitCode", volcano({}, policies=[{"action": "AbortJob", "exitCode": 0}])),
    (
        "spec.policies[1].exitCode",
        volcano({}, policies=[{"action": "AbortJob", "exitCode": 3}] * 2),
    ),
    ("spec.policies[0].event", volcano({}, policies=[{**_RESTART, "event": "OutOfSync"}])),
    ("spec.policies[0].action", volcano({}, policies=[{**_RESTART, "action": "SyncJob"}])),
    ("spec.plugins", volcano({}, plugins={"none": []})),
    ("spec.queue", volcano({}, queue="root")),
    ("spec.minAvailable", volcano({}, minAvailable=2)),
    ("spec.tasks[0].minAvailable", volcano({"minAvailable": 2})),
    (
        "spec.tasks[*].dependsOn",
        volcano(
            {"name": "a", "dependsOn": {"name": ["b"]}},
            {"name": "b", "dependsOn": {"name": ["a"]}},
        ),
    ),
    (
        "spec.networkTopology.highestTierName",
        volcano({}, networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
    ),
    ("spec.parent", made("scheduling.volcano.sh/v1beta1", "Queue", {"parent": "one"})),
    ("spec.deserved[cpu]", volcano_queue(deserved={"cpu": 4}, capability={"cpu": "2"})),
    ("spec.capability[cpu]", volcano_queue(capability={"cpu": "-1"})),
    (
        "spec.guarantee.resource[cpu]",
        volcano_queue(guarantee={"resource": {"cpu": 2}}, deserved={"cpu": 1}),
    ),
    ("metadata.name", sample("pytorchjob", name="1st")),
    ("metadata.name", sample("tfjob", name="Big")),
    (
        "spec.pytorchReplicaSpecs[Master].replicas",
        changed("pytorchjob", "spec", "pytorchReplicaSpecs", "Master", "replicas", to=2),
    ),
    (
        "spec.pytorchReplicaSpecs[Worker].template.spec.containers[0].image",
        changed(
            "pytorchjob",
            *("spec", "pytorchReplicaSpecs", "Worker", "template", "spec", "containers", 0),
            "image",
            to="",
        ),
    ),
    (
        "spec.mpiReplicaSpecs[Worker].replicas",
        changed("mpijob", "spec", "mpiReplicaSpecs", "Worker", "replicas", to=0),
    ),
    (
        "spec.mpiReplicaSpecs[Worker].restartPolicy",
        changed("mpijob", "spec", "mpiReplicaSpecs", "Worker", "restartPolicy", to="Always"),
    ),
    ("spec.replicatedJobs[1].name", jobset({"name": "a"}, {"name": "a"})),
    ("spec.replicatedJobs[0].name", jobset({"name": "a" * 60})),
    ("spec.replicatedJobs[0].groupName", jobset({"name": "a", "groupName": "No"})),
    (
        "spec.replicatedJobs[0].dependsOn",
        jobset({"name": "a", "dependsOn": [{"name": "b", "status": "Ready"}]}, {"name": "b"}),
    ),
    (
        "spec.failurePolicy.rules[1].name",
        jobset(
            {"name": "a"},
            failurePolicy={"rules": [{"name": "r", "action": "FailJobSet"}] * 2},
        ),
    ),
    (
        "spec.failurePolicy.rules[0].name",
        jobset({"name": "a"}, failurePolicy={"rules": [{"name": "1", "action": "FailJobSet"}]}),
    ),
    (
        "spec.failurePolicy.rules[0].onJobFailureReasons",
        jobset(
            {"name": "a"},
            failurePolicy={"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["BadLuck"]}]},
        ),
    ),
    (
        "spec.coordinator.jobIndex",
        jobset({"name": "a"}, coordinator={"replicatedJob": "a", "jobIndex": 1}),
    ),
    (
        "spec.coordinator.podIndex",
        jobset({"name": "a"}, coordinator={"replicatedJob": "a", "podIndex": 2}),
    ),
    (
        "spec.replicatedJobs[0].template.spec.completions",
        jobset(
            {"name": "a", "template": {"spec": {"template": POD}}},
            coordinator={"replicatedJob": "a"},
        ),
    ),
    ("spec.resourceGroups[0].flavors[1].name", cluster_queue(flavor(), flavor())),
    (
        "spec.resourceGroups[0].coveredResources[1]",
        cluster_queue(flavor(), covered=["cpu", "cpu"]),
    ),
    ("spec.resourceGroups[0].flavors[0].resources", cluster_queue(flavor(), covered=["memory"])),
    (
        "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
        cluster_queue(flavor(nominalQuota=-1)),
    ),
    (
        "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit",
        cluster_queue(flavor(borrowingLimit=1)),
    ),
    (
        "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        cluster_queue(flavor(lendingLimit=2), cohortName="c"),
    ),
    ("spec.nodeTaints[1]", resource_flavor(nodeTaints=[{"key": "a", "effect": "NoExecute"}] * 2)),
    ("spec.nodeTaints[0].effect", resource_flavor(nodeTaints=[{"key": "a", "effect": "Never"}])),
    ("spec.tolerations[0].operator", resource_flavor(tolerations=[{"operator": "Equal"}])),
    (
        "spec.tolerations[0].value",
        resource_flavor(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    ),
    (
        "spec.tolerations[0].effect",
        resource_flavor(tolerations=[{"key": "a", "tolerationSeconds": 3}]),
    ),
    ("spec.resources", made("scheduling.run.ai/v2", "Queue", {})),
    (
        "spec.minSubGroup",
        made("scheduling.run.ai/v2alpha2", "PodGroup", {"minMember": 1, "minSubGroup": 1}),
    ),
]


@pytest.mark.parametrize(("field", "body"), DENIED, ids=lambda v: v if isinstance(v, str) else "")
def test_denied_upstream_is_refused_here(field: str, body: Json) -> None:
    meta = {"namespace": "default", "uid": "u", **body["metadata"]}
    obj = convert({**body, "metadata": meta}, AnyObject)
    found = BY_KIND[obj.api_version.partition("/")[0], obj.kind].to_native(obj)
    assert ([p.field for p in found.refusals], found.objects) == ([field], ())


def test_kai_without_quota_shares_and_says_so() -> None:
    amounts = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    body = made(
        "scheduling.run.ai/v2",
        "Queue",
        {"resources": {"gpu": amounts, "cpu": amounts, "memory": amounts}},
    )
    obj = convert(body, AnyObject)
    source = BY_KIND["scheduling.run.ai", "Queue"]
    (queue,) = source.to_native(obj).objects
    assert queue["spec"] == {"weight": 1}
    assert "quota -1" in source.status_of(obj, [], ())["conditions"][0]["message"]


def test_jobs_name_kai_as_scheduler_and_queue() -> None:
    body = sample("pytorchjob", labels={"kai.scheduler/queue": "team"})
    for replicas in body["spec"]["pytorchReplicaSpecs"].values():
        replicas["template"]["spec"]["schedulerName"] = "kai-scheduler"
    obj = convert(body, AnyObject)
    (job,) = BY_KIND["kubeflow.org", "PyTorchJob"].to_native(obj).objects
    assert job["spec"]["queue"] == "team"
