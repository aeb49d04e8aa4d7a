"""The controllers of other systems' objects, ended at each of their calls: nothing lost or doubled.

What the jobs made of them would do is played by the story itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.foreign import SERVED, served, template
from tests.support.lives import in_process
from tests.support.waiting import eventually

from lockstep.api import timestamp
from lockstep.api.core import CONFIG_MAPS, PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import JOB_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.compat import dialects
from lockstep.dialects.controller import add_dialects
from lockstep.dialects.scaling import add_scaling
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import NotFound
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
Story = Callable[[Stage], Awaitable[None]]
KUBEFLOW, VOLCANO = "kubeflow.org/v1", "batch.volcano.sh/v1alpha1"
TRAINER, FLOW = "trainer.kubeflow.org/v1alpha1", "flow.volcano.sh/v1alpha1"
KUEUE, ET = "kueue.x-k8s.io/v1beta1", "kai.alibabacloud.com/v1alpha1"
BEGAN = timestamp.show(1_700_000_000.0)
USED = [
    (KUBEFLOW, "PyTorchJob"),
    (VOLCANO, "Job"),
    (TRAINER, "TrainJob"),
    (FLOW, "JobFlow"),
    (FLOW, "JobTemplate"),
    (KUEUE, "LocalQueue"),
    (KUEUE, "ClusterQueue"),
    (ET, "TrainingJob"),
    (ET, "ScaleOut"),
    (ET, "ScaleIn"),
]


async def foreign(client: Client, ready: Callable[[str], None]) -> None:
    """Serve other systems' objects, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_dialects(manager)
    add_scaling(manager)
    await manager.run(ready)


async def put(stage: Stage, version: str, kind: str, name: str, spec: Json) -> None:
    res = served(version, kind)
    meta = {"name": name, **({"namespace": "default"} if res.namespaced else {})}

    async def made() -> bool:
        try:
            await stage.client.create(res, {"metadata": meta, "spec": spec}, meta.get("namespace"))
        except NotFound:
            return False
        return True

    await eventually(made, 60, f"{kind} to be served")


async def begin(stage: Stage) -> None:
    await ensure_foreign(stage.client, dialects.manifests(dialects.DIALECTS))
    await clear(stage.client)
    stage.start()


async def clear(client: Client) -> None:
    """Delete what the run before has left: kinds that no emptying of a server knows."""
    for version, kind in USED:
        res = served(version, kind)
        space = "default" if res.namespaced else None
        try:
            listing = await client.list(res, space)
        except NotFound:
            continue
        for one in listing.items:
            await client.delete(res, one.metadata.name, space, propagation="Background")


async def native(stage: Stage, name: str, what: Callable[[Any], object]) -> Any:
    async def look() -> Any:
        try:
            found = await stage.client.get(TRAINING_JOBS, name, "default")
        except NotFound:
            return None
        return found if what(found) else None

    return await stage.until(look, f"the job made of {name}")


async def goes(stage: Stage, name: str, phase: str, **more: Any) -> None:
    """Let the job made of another be in *phase*."""
    said = {"type": phase, "status": "True", "lastTransitionTime": BEGAN, "reason": "x"}
    status = {"phase": phase, "startTime": BEGAN, "conditions": [said], **more}
    await stage.client.patch(
        TRAINING_JOBS, name, {"status": status}, "default", subresource="status"
    )


async def says(stage: Stage, version: str, kind: str, name: str, **wanted: Any) -> None:
    res = served(version, kind)

    async def look() -> bool:
        found = await stage.client.get(res, name, "default" if res.namespaced else None)
        return all(found.status.get(key) == value for key, value in wanted.items())

    await stage.until(look, f"{kind} {name} says {wanted}")


async def a_job(stage: Stage) -> None:
    """A job comes, runs, and ends."""
    await begin(stage)
    main = template("train")
    main["spec"]["containers"][0]["name"] = "pytorch"
    await put(
        stage, KUBEFLOW, "PyTorchJob", "pt", {"pytorchReplicaSpecs": {"Worker": {"template": main}}}
    )
    await native(stage, "pt", lambda job: True)
    await goes(stage, "pt", "Running")
    await says(stage, KUBEFLOW, "PyTorchJob", "pt", startTime=BEGAN)
    await goes(stage, "pt", "Succeeded", completionTime=BEGAN)
    await says(stage, KUBEFLOW, "PyTorchJob", "pt", completionTime=BEGAN)


async def a_job_with_files(stage: Stage) -> None:
    """A job comes that needs an object beside it, and is changed."""
    await begin(stage)
    spec = {
        "plugins": {"svc": []},
        "tasks": [{"name": "a", "replicas": 2, "template": template("x")}],
    }
    await put(stage, VOLCANO, "Job", "vc", spec)
    await native(stage, "vc", lambda job: True)
    change = {"spec": {"queue": "other"}}
    await stage.client.patch(served(VOLCANO, "Job"), "vc", change, "default")
    await native(stage, "vc", lambda job: job.spec.queue == "other")

    async def files() -> bool:
        try:
            found = await stage.client.get(CONFIG_MAPS, "vc-svc", "default")
        except NotFound:
            return False
        return found.data["a.host"].count("\n") == 1

    await stage.until(files, "the names of the hosts")


async def queues(stage: Stage) -> None:
    """Queues come, and one of them goes."""
    await begin(stage)
    await put(stage, KUEUE, "ClusterQueue", "cq", {"cohort": "all"})
    for name in ("stays", "goes"):
        await put(stage, KUEUE, "LocalQueue", name, {"clusterQueue": "cq"})

    async def there() -> bool:
        found = {q.metadata.name for q in (await stage.client.list(QUEUES)).items}
        return {"all", "cq", "default.stays", "default.goes"} <= found

    await stage.until(there, "all queues")
    await stage.client.delete(served(KUEUE, "LocalQueue"), "goes", "default")

    async def gone() -> bool:
        found = {q.metadata.name for q in (await stage.client.list(QUEUES)).items}
        return "default.goes" not in found

    await stage.until(gone, "the end of one")


async def scaling(stage: Stage) -> None:
    """An elastic job gets two more workers, and loses the first."""
    await begin(stage)
    sizes = {"replicas": 1, "maxReplicas": 4, "template": template("sshd")}
    replicas = {"launcher": {"template": template("mpirun")}, "worker": sizes}
    await put(stage, ET, "TrainingJob", "et", {"etReplicaSpecs": replicas})
    await native(stage, "et", lambda job: True)
    await _ready(stage, 1)
    await put(stage, ET, "ScaleOut", "more", {"selector": {"name": "et"}, "toAdd": {"count": 2}})
    await native(stage, "et", lambda job: job.spec.roles[1].replicas == 3)
    await _ready(stage, 3)
    await says(stage, ET, "ScaleOut", "more", phase="ScaleSucceeded")
    first = {"podNames": ["et-worker-0"]}
    await put(stage, ET, "ScaleIn", "less", {"selector": {"name": "et"}, "toDelete": first})
    await native(stage, "et", lambda job: job.spec.roles[1].omit == [0])
    await _ready(stage, 2)
    await says(stage, ET, "ScaleIn", "less", phase="ScaleSucceeded")
    await says(stage, ET, "TrainingJob", "et", currentScaler=None)


async def _ready(stage: Stage, workers: int) -> None:
    counts = {"worker": {"active": workers, "ready": workers}}
    await goes(stage, "et", "Running", replicaStatuses=counts)


async def a_train_job(stage: Stage) -> None:
    """A TrainJob of a built-in runtime runs to its end."""
    await begin(stage)
    trainer = {"numNodes": 2, "image": "img", "command": ["train"]}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}
    await put(stage, TRAINER, "TrainJob", "tj", spec)
    await native(stage, "tj", lambda job: True)
    await goes(stage, "tj", "Running")
    await goes(stage, "tj", "Succeeded", completionTime=BEGAN)

    async def complete() -> bool:
        found = await stage.client.get(served(TRAINER, "TrainJob"), "tj", "default")
        told = {one["type"]: one["status"] for one in found.status.get("conditions", [])}
        return told.get("Complete") == "True"

    await stage.until(complete, "TrainJob tj is complete")


async def a_flow(stage: Stage) -> None:
    """The two steps of a flow are made, run to their end and are deleted."""
    await begin(stage)
    for name in ("load", "train"):
        tasks = {"tasks": [{"name": "a", "template": template("x")}]}
        await put(stage, FLOW, "JobTemplate", name, tasks)
    steps = [{"name": "load"}, {"name": "train", "dependsOn": {"targets": ["load"]}}]
    await put(stage, FLOW, "JobFlow", "f", {"flows": steps, "jobRetainPolicy": "delete"})
    for name in ("f-load", "f-train"):
        await native(stage, name, lambda job: True)
        await goes(stage, name, "Succeeded", completionTime=BEGAN)
    await says(stage, FLOW, "JobFlow", "f", state={"phase": "Succeed"})

    async def gone() -> bool:
        return not (await stage.client.list(TRAINING_JOBS, "default")).items

    await stage.until(gone, "its jobs are deleted")


async def implied(stage: Stage) -> None:
    """Pods imply a gang, say another size, and go."""
    await begin(stage)
    spec = {"schedulerName": "lockstep", **template("x")["spec"]}
    size = "kueue.x-k8s.io/pod-group-total-count"
    meta = {"name": "p", "labels": {"kueue.x-k8s.io/pod-group-name": "pair"}}
    body = {"metadata": {**meta, "annotations": {size: "2"}}, "spec": spec}
    await stage.client.create(PODS, body, "default")
    await stage.until(lambda: _members(stage, 2), "the gang")
    await stage.client.patch(PODS, "p", {"metadata": {"annotations": {size: "3"}}}, "default")
    await stage.until(lambda: _members(stage, 3), "the gang's new size")
    await stage.client.delete(PODS, "p", "default", grace_seconds=0)
    await stage.until(lambda: _members(stage, None), "the gang's end")


async def _members(stage: Stage, wanted: int | None) -> bool:
    try:
        gang = await stage.client.get(GANGS, "pair", "default")
    except NotFound:
        return wanted is None
    return gang.spec.min_member == wanted


async def outcome(stage: Stage) -> object:
    """Return what there is in the end."""
    ends: Json = {}
    client = stage.client
    for version, kind in USED:
        res = SERVED[version.partition("/")[0], kind]
        for one in (await client.list(res, "default" if res.namespaced else None)).items:
            ends[f"{kind} {one.metadata.name}"] = _timeless(one.status)
    jobs = (await client.list(TRAINING_JOBS, "default")).items
    gangs = (await client.list(GANGS, "default")).items
    ends["gangs"] = [(one.metadata.name, one.spec.min_member) for one in gangs]
    ends["jobs"] = [(j.metadata.name, j.spec.queue, len(j.spec.roles)) for j in jobs]
    files = (await client.list(CONFIG_MAPS, "default", label_selector=JOB_LABEL)).items
    ends["files"] = [(one.metadata.name, one.data) for one in files]
    for queue in (await client.list(QUEUES)).items:
        if queue.metadata.annotations:
            ends[f"queue {queue.metadata.name}"] = queue.spec.parent
    return ends


def _timeless(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _timeless(v) for k, v in tree.items() if not k.endswith("Time")}
    return [_timeless(one) for one in tree] if isinstance(tree, list) else tree


STORIES: dict[str, Story] = {
    "a job runs to its end": a_job,
    "a job with files is changed": a_job_with_files,
    "a TrainJob runs to its end": a_train_job,
    "a flow has its steps": a_flow,
    "pods imply a gang": implied,
    "queues come and go": queues,
    "a job grows and shrinks": scaling,
}


def told(story: str) -> Scenario:
    return Scenario(in_process(foreign), STORIES[story], outcome)


@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_wherever_the_controller_ends(arena: Arena, story: str) -> None:
    await arena.endures(told(story))


@pytest.mark.real_sample()
@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_in_any_weather(arena: Arena, story: str) -> None:
    await arena.weathers(told(story), range(arena.seeds))
