"""TrainJobs: what the runtime says, what the job says in its place, and the ranks' variables."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.registry import sources
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.jobs.objects import pod
from lockstep.jobs.validate import problems

Json = dict[str, Any]
TRAINER = next(s for s in sources() if s.kind.kind == "TrainJob")


def runtime(policy: Json, *more: Json, **node: Any) -> Json:
    main = {"name": "node", "image": "base", "command": ["python", "base.py"], **node}
    template = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": [main]}}},
    }
    after = [{"name": one["name"], "status": "Complete"} for one in more]
    node_job = {"name": "node", "template": template, **({"dependsOn": after} if more else {})}
    return {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [*more, node_job]}}}


FETCH: Json = {
    "name": "dataset-initializer",
    "template": {
        "metadata": {
            "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}
        },
        "spec": {"template": {"spec": {"containers": [{"name": "dataset-initializer"}]}}},
    },
}


def translated(spec: Json, given: Json | None = None) -> Any:
    ref = {"runtimeRef": {"name": "mine" if given else "torch-distributed"}}
    meta = {"name": "t", "namespace": "n", "uid": "u"}
    body = {"kind": "TrainJob", "metadata": meta, "spec": {**ref, **spec}}

    def look(kind: ForeignKind, namespace: str, name: str) -> AnyObject | None:
        if given is None or (kind.kind, name) != ("ClusterTrainingRuntime", "mine"):
            return None
        return convert({"metadata": {"name": name}, "spec": given}, AnyObject)

    return TRAINER.to_native(convert(body, AnyObject), look)


def job(spec: Json, given: Json | None = None) -> TrainingJob:
    found = translated(spec, given)
    assert not found.refusals
    (body,) = found.objects
    made = convert(body, TrainingJob)
    assert problems(made) == []
    return made


def environment(made: TrainingJob, name: str) -> dict[str, str]:
    everyone = members(made)
    member = next(m for m in everyone if m.name == name)
    main = pod(made, FRAMEWORKS[made.spec.framework], member, everyone)["spec"]["containers"][0]
    return {v["name"]: v.get("value", "") for v in main["env"]}


def test_the_jobs_own_words_go_before_its_runtimes() -> None:
    trainer = {"image": "mine", "args": ["--fast"], "numNodes": 3, "env": [{"name": "A"}]}
    made = job({"trainer": trainer}, runtime({"torch": {}}, env=[{"name": "A"}, {"name": "B"}]))
    main = made.spec.roles[0].template["spec"]["containers"][0]
    assert (main["image"], main["command"], main["args"]) == (
        "mine",
        ["python", "base.py"],
        ["--fast"],
    )
    assert [v["name"] for v in main["env"]] == ["B", "A"]
    assert [m.name for m in members(made)] == ["t-node-0-0", "t-node-0-1", "t-node-0-2"]


def test_nodes_of_torch_are_told_as_by_the_trainer() -> None:
    made = job({"trainer": {"numNodes": 2, "numProcPerNode": 4, "command": ["torchrun"]}})
    told = environment(made, "t-node-0-1")
    wanted = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "4", "PET_NODE_RANK": "1"}
    wanted |= {"PET_MASTER_ADDR": "t-node-0-0.t", "JOB_COMPLETION_INDEX": "1"}
    assert wanted == {key: told[key] for key in wanted}


def test_initializers_go_before_and_are_no_ranks() -> None:
    fetched = {"dataset": {"storageUri": "hf://tiny", "env": [{"name": "T", "value": "1"}]}}
    spec = {"initializer": fetched, "trainer": {"numNodes": 2}}
    made = job(spec, runtime({"jax": {}}, FETCH))
    node, fetch = made.spec.roles
    assert [(a.role, a.condition) for a in node.after] == [("dataset-initializer", "Complete")]
    env = fetch.template["spec"]["containers"][0]["env"]
    assert [v["value"] for v in env] == ["hf://tiny", "1"]
    told = environment(made, "t-node-0-1")
    assert (told["JAX_NUM_PROCESSES"], told["JAX_PROCESS_ID"]) == ("2", "1")
    assert told["JAX_COORDINATOR_ADDRESS"].startswith("t-node-0-0.t:")
    policy = made.spec.success_policy
    assert policy is not None
    assert policy.roles == ["node"]


def test_mpi_has_a_launcher_that_runs_the_command() -> None:
    spec = {
        "runtimeRef": {"name": "deepspeed-distributed"},
        "trainer": {"numNodes": 2, "numProcPerNode": 2, "command": ["mpirun", "true"]},
    }
    made = job(spec)
    launcher, worker = made.spec.roles
    assert (made.spec.framework, launcher.name, worker.name) == ("mpi", "launcher", "worker")
    assert launcher.template["spec"]["containers"][0]["command"] == ["mpirun", "true"]
    assert "command" not in worker.template["spec"]["containers"][0]
    assert [m.name for m in members(made)] == ["t-launcher-0-0", "t-node-0-0", "t-node-0-1"]
    files = FRAMEWORKS["mpi"].files(made, frozenset())
    assert files["hostfile"].startswith("t-node-0-0.t.n.svc slots=2\n")


def test_overrides_reach_the_pods_they_name() -> None:
    override = {
        "targetJobs": [{"name": "node"}],
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "nodeSelector": {"gpu": "h100"},
            "containers": [{"name": "node", "env": [{"name": "X", "value": "1"}]}],
        },
    }
    role = job({"podTemplateOverrides": [override]}).spec.roles[0]
    assert role.template["metadata"]["labels"] == {"team": "a"}
    assert role.template["spec"]["nodeSelector"] == {"gpu": "h100"}
    assert role.template["spec"]["containers"][0]["env"] == [{"name": "X", "value": "1"}]


PATCH = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec"


def patched(job: str, spec: Json) -> tuple[Json, None]:
    jobs = [{"name": job, "template": {"spec": spec}}]
    template = {"metadata": {"labels": {"team": "ml"}}, "spec": {"replicatedJobs": jobs}}
    one = {"manager": "example.io/team", "trainingRuntimeSpec": {"template": template}}
    return {"runtimePatches": [one]}, None


def test_runtime_patches_change_the_nodes_pods() -> None:
    pod_spec = {
        "serviceAccountName": "training",
        "nodeSelector": {"gpu": "h100"},
        "containers": [{"name": "node", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}],
    }
    meta = {"annotations": {"scraped": "true"}}
    spec, _ = patched("node", {"template": {"metadata": meta, "spec": pod_spec}})
    (role,) = job(spec).spec.roles
    made = role.template["spec"]
    assert (made["serviceAccountName"], made["nodeSelector"]) == ("training", {"gpu": "h100"})
    assert made["containers"][0]["volumeMounts"] == [{"name": "d", "mountPath": "/d"}]
    assert role.template["metadata"]["annotations"]["scraped"] == "true"


REFUSED: dict[str, tuple[Json, Json | None]] = {
    "spec.runtimeRef.name": ({"runtimeRef": {"name": "none"}}, None),
    "spec.runtimeRef.apiGroup": ({"runtimeRef": {"name": "a", "apiGroup": "b"}}, None),
    "spec.trainer.numProcPerNode": ({"trainer": {"numProcPerNode": "many"}}, None),
    "spec.podTemplateOverrides[0].targetJobs[0].name": (
        {"podTemplateOverrides": [{"targetJobs": [{"name": "x"}]}]},
        None,
    ),
    f"{PATCH}.replicatedJobs[0].name": patched("driver", {}),
    f"{PATCH}.replicatedJobs[0].template.spec.parallelism": patched("node", {"parallelism": 2}),
    "spec.runtimeRef.name (ClusterTrainingRuntime mine: spec.mlPolicy.flux)": (
        {},
        runtime({"flux": {}}),
    ),
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_cannot_be_honoured_is_named(field: str) -> None:
    spec, given = REFUSED[field]
    found = translated(spec, given)
    assert found.objects == ()
    assert [p.field for p in found.refusals] == [field]
