"""Kubeflow's jobs: what is refused, what pods get, and what their status says."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.support import jobs

from lockstep.api.core import AnyObject
from lockstep.api.meta import Condition
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.api.wire import convert
from lockstep.compat.registry import sources
from lockstep.compat.translation import Translation
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.jobs.objects import pod
from lockstep.jobs.validate import problems

Json = dict[str, Any]
PYTORCH = next(s for s in sources() if s.kind.kind == "PyTorchJob")


def replica(replicas: int = 1, policy: str = "OnFailure", **container: Any) -> Json:
    main = {"name": "pytorch", "image": "i", "command": ["python", "t.py"], **container}
    spec = {"containers": [main]}
    return {"replicas": replicas, "restartPolicy": policy, "template": {"spec": spec}}


def pytorchjob(labels: dict[str, str] | None = None, **spec: Any) -> AnyObject:
    spec.setdefault("pytorchReplicaSpecs", {"Master": replica(), "Worker": replica(2)})
    meta = {"name": "t", "namespace": "n", "uid": "u", "labels": labels or {}}
    body = {"kind": "PyTorchJob", "metadata": meta, "spec": spec}
    return convert(body, AnyObject)


def translated(**spec: Any) -> Translation:
    return PYTORCH.to_native(pytorchjob(**spec))


def native(**spec: Any) -> TrainingJob:
    (body,) = translated(**spec).objects
    return convert(body, TrainingJob)


def pods(job: TrainingJob) -> list[Json]:
    framework, everyone = FRAMEWORKS[job.spec.framework], members(job)
    return [pod(job, framework, one, everyone) for one in everyone]


def environment(one: Json) -> dict[str, str]:
    return {v["name"]: v["value"] for v in one["spec"]["containers"][0]["env"]}


def test_pods_are_called_and_numbered_as_by_training_operator() -> None:
    found = pods(native(nprocPerNode="2"))
    assert [p["metadata"]["name"] for p in found] == ["t-master-0", "t-worker-0", "t-worker-1"]
    assert environment(found[2]) | {
        "WORLD_SIZE": "6",
        "RANK": "2",
        "PET_NNODES": "3",
        "PET_NODE_RANK": "2",
        "PET_NPROC_PER_NODE": "2",
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": "t-master-0.t",
    } == environment(found[2])
    prefix = "training.kubeflow.org/"
    labels = found[0]["metadata"]["labels"]
    assert {k.removeprefix(prefix): v for k, v in labels.items() if k.startswith(prefix)} == {
        "job-name": "t",
        "operator-name": "pytorchjob-controller",
        "replica-type": "master",
        "replica-index": "0",
        "job-role": "master",
    }


BAD: dict[str, tuple[Json, str]] = {
    "a field of nobody": ({"runPolicy": {"x": 1}}, "spec.runPolicy.x"),
    "no replicas": ({"pytorchReplicaSpecs": {}}, "spec.pytorchReplicaSpecs"),
    "a strange type": (
        {"pytorchReplicaSpecs": {"Chief": replica()}},
        "spec.pytorchReplicaSpecs",
    ),
    "two masters": (
        {"pytorchReplicaSpecs": {"Master": replica(2)}},
        "spec.pytorchReplicaSpecs[Master].replicas",
    ),
    "no such container": (
        {"pytorchReplicaSpecs": {"Worker": replica(1, name="main")}},
        "spec.pytorchReplicaSpecs[Worker].template.spec.containers",
    ),
    "no containers": (
        {"pytorchReplicaSpecs": {"Worker": {"template": {}}}},
        "spec.pytorchReplicaSpecs[Worker].template.spec.containers",
    ),
    "processes of no number": ({"nprocPerNode": "many"}, "spec.nprocPerNode"),
    "too many at least": (
        {"runPolicy": {"schedulingPolicy": {"minAvailable": 9}}},
        "spec.runPolicy.schedulingPolicy.minAvailable",
    ),
    "a wrong type": ({"runPolicy": {"suspend": "yes"}}, "spec.runPolicy.suspend"),
    "elastic metrics": (
        {"elasticPolicy": {"metrics": [{"type": "Resource"}]}},
        "spec.elasticPolicy.metrics",
    ),
    "more at least than there are": (
        {"elasticPolicy": {"minReplicas": 3}},
        "spec.elasticPolicy.minReplicas",
    ),
}


@pytest.mark.parametrize("words", BAD)
def test_what_cannot_be_honoured_is_named(words: str) -> None:
    spec, field = BAD[words]
    found = translated(**spec)
    assert found.objects == ()
    assert [problem.field for problem in found.refusals] == [field]
    assert all(problem.allowed for problem in found.refusals)


def test_a_reserved_variable_set_otherwise_is_refused() -> None:
    env = [{"name": "RANK", "value": "7"}]
    wrong = problems(native(pytorchReplicaSpecs={"Worker": replica(2, env=env)}))
    assert "RANK is set by the framework" in str(wrong[0])


@pytest.mark.parametrize(
    ("policy", "limit", "restarts"),
    [("Never", 5, 0), ("OnFailure", 5, 5), ("Always", None, 2**31 - 1)],
)
def test_restarts_are_as_often_as_it_says(policy: str, limit: int | None, restarts: int) -> None:
    run = {} if limit is None else {"backoffLimit": limit}
    job = native(pytorchReplicaSpecs={"Worker": replica(2, policy)}, runPolicy=run)
    assert job.spec.recovery.max_restarts == restarts


def test_an_elastic_job_has_bounds_and_a_launcher() -> None:
    replicas = {"Worker": replica(3)}
    policy = {"minReplicas": 2, "maxReplicas": 4, "maxRestarts": 9, "rdzvBackend": "c10d"}
    job = native(pytorchReplicaSpecs=replicas, elasticPolicy=policy)
    (role,) = job.spec.roles
    assert (role.min, role.replicas, role.max) == (2, 3, 4)
    assert (job.spec.launcher, job.spec.recovery.max_restarts) == ("Auto", 9)


def test_the_queue_is_kueues_label_before_the_policys() -> None:
    run = {"schedulingPolicy": {"queue": "q"}}
    assert native(runPolicy=run).spec.queue == "q"
    found = native(runPolicy=run, labels={"kueue.x-k8s.io/queue-name": "lq"})
    assert found.spec.queue == "n.lq"


def test_its_master_port_is_kept() -> None:
    ports = [{"name": "pytorchjob-port", "containerPort": 23333}]
    replicas = {"Master": replica(ports=ports), "Worker": replica()}
    found = pods(native(pytorchReplicaSpecs=replicas))
    assert [environment(p)["MASTER_PORT"] for p in found] == ["23333", "23333"]


def told(*conditions: Condition, **status: Any) -> Json:
    job = jobs.job(name="t")
    full = TrainingJobStatus(conditions=list(conditions), **status)
    return PYTORCH.status_of(pytorchjob(), [structs.replace(job, status=full)], ())


def test_its_conditions_are_told_in_kubeflows_words() -> None:
    time = "2026-01-01T00:00:00Z"
    done = Condition(type="Succeeded", status="True", last_transition_time=time)
    ran = Condition(type="Running", status="False", last_transition_time=time)
    found = told(ran, done, completion_time=time)
    said = [(c["type"], c["status"], c["reason"]) for c in found["conditions"]]
    assert said == [
        ("Created", "True", "PyTorchJobCreated"),
        ("Running", "False", "PyTorchJobRunning"),
        ("Succeeded", "True", "PyTorchJobSucceeded"),
    ]
    assert found["completionTime"] == time
    assert "Worker" in found["replicaStatuses"]


def test_what_is_refused_shows_as_failed_with_the_field() -> None:
    wrong = translated(nprocPerNode="many").refusals
    found = PYTORCH.status_of(pytorchjob(), [], wrong)
    assert found["conditions"][-1]["type"] == "Failed"
    assert "spec.nprocPerNode: given 'many'" in found["conditions"][-1]["message"]


@pytest.mark.parametrize(
    ("reason", "failed"),
    [("InvalidSpec", True), ("Refused", True), ("Creating", False), ("WaitsForJobs", False)],
)
def test_a_job_has_failed_only_where_its_pods_were_refused(reason: str, *, failed: bool) -> None:
    made = Condition(type="Created", status="False", reason=reason, message="why")
    assert ("Failed" in [c["type"] for c in told(made)["conditions"]]) is failed
