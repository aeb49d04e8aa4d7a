"""Jobs of other systems that start in part, wait for a queue to open, or bring objects along."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import foreign
from tests.support.foreign import template, true
from tests.support.kube_cluster import KubeCluster
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.core import CLAIMS, PRIORITY_CLASSES
from lockstep.api.training import TRAINING_JOBS
from lockstep.compat.kueue.kinds import PRIORITY
from lockstep.compat.translation import MANAGER
from lockstep.kube.errors import NotFound

Json = dict[str, Any]
VOLCANO, JOBSET = "batch.volcano.sh/v1alpha1", "jobset.x-k8s.io/v1alpha2"
KUEUE, SPACE = "kueue.x-k8s.io/v1beta2", "default"
ONE_CPU = {"resources": {"requests": {"cpu": "1"}}}

pytestmark = pytest.mark.usefixtures("kinds")


@pytest.fixture
async def kinds(cluster: Cluster) -> None:
    """All kinds are there, installed by Lockstep."""
    await foreign.install(cluster)


async def test_a_volcano_job_starts_with_what_its_queue_has(cluster: Cluster) -> None:
    queue = {"capability": {"cpu": "1"}}
    await foreign.put(cluster, "scheduling.volcano.sh/v1beta1", "Queue", {"name": "tight"}, queue)
    tasks = [{"name": "t", "replicas": 3, "template": template("sh", "-c", "true", **ONE_CPU)}]
    spec = {"queue": "tight", "minAvailable": 1, "tasks": tasks}
    await foreign.create(cluster, VOLCANO, "Job", "part", spec)
    over = await foreign.says(
        cluster, VOLCANO, "Job", "part", lambda s: s.get("state", {}).get("phase") == "Completed"
    )
    assert over["succeeded"] == 3


async def test_a_job_waits_until_its_queue_is_not_held(cluster: Cluster) -> None:
    quota = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": 64}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    await foreign.put(cluster, KUEUE, "ResourceFlavor", {"name": "any"}, {})
    chosen = {"resourceGroups": groups, "namespaceSelector": {}}
    await foreign.put(cluster, KUEUE, "ClusterQueue", {"name": "all"}, chosen)
    held = {"clusterQueue": "all", "stopPolicy": "Hold"}
    await foreign.put(cluster, KUEUE, "LocalQueue", {"name": "shut", "namespace": SPACE}, held)
    spec: Json = {"suspend": True, "template": template("sh", "-c", "true", **ONE_CPU)}
    if isinstance(cluster.node.server, KubeCluster):
        spec["managedBy"] = MANAGER
    labels = {"kueue.x-k8s.io/queue-name": "shut"}
    meta = {"name": "held", "namespace": SPACE, "labels": labels}
    await foreign.put(cluster, "batch/v1", "Job", meta, spec)

    async def suspended() -> bool:
        try:
            job = await cluster.client.get(TRAINING_JOBS, "held", SPACE)
        except NotFound:
            return False
        return job.status.phase == "Suspended"

    await eventually(suspended, 60, "the job to be kept out of its queue")

    def counted(told: Json) -> bool:
        # The counts come with the Queue's first status, a moment after the condition.
        return true("Active")(told) and "pendingWorkloads" in told

    told = await foreign.says(cluster, KUEUE, "ClusterQueue", "all", counted)
    assert told["pendingWorkloads"] == 0
    open_ = {"spec": {"stopPolicy": "None"}}
    await cluster.client.patch(foreign.served(KUEUE, "LocalQueue"), "shut", open_, SPACE)
    over = await foreign.says(cluster, "batch/v1", "Job", "held", true("Complete"))
    assert over["succeeded"] == 1


async def test_a_workload_priority_class_comes_and_goes_with_its_class(cluster: Cluster) -> None:
    body = {"metadata": {"name": "urgent"}, "value": 1000}
    there = PRIORITY.resource

    async def made() -> bool:
        try:
            await cluster.client.create(there, body)
        except NotFound:
            return False
        return True

    await eventually(made, 60, "WorkloadPriorityClass to be served")

    async def value() -> int | None:
        try:
            return (await cluster.client.get(PRIORITY_CLASSES, "urgent")).value
        except NotFound:
            return None

    assert await eventually(value, 60, "the PriorityClass urgent") == 1000
    await cluster.client.delete(there, "urgent")

    async def gone() -> bool:
        return await value() is None

    await eventually(gone, 60, "the end of the PriorityClass")


async def test_claims_of_a_jobset_are_made_and_belong_to_it(cluster: Cluster) -> None:
    mounts = [{"name": "cache", "mountPath": "/cache"}]
    pod = template("sh", "-c", "true", volumeMounts=mounts)
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    spec = {
        "replicatedJobs": [{"name": "a", "template": {"spec": {"template": pod}}}],
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "cache"}, "spec": claim}]}],
    }
    await foreign.create(cluster, JOBSET, "JobSet", "with-cache", spec)

    async def owner() -> str | None:
        try:
            found = await cluster.client.get(CLAIMS, "cache-with-cache", SPACE)
        except NotFound:
            return None
        return found.metadata.owner_references[0].name

    assert await eventually(owner, 60, "the claim of the JobSet") == "with-cache"
