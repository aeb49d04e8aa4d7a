"""Steps that are jobs of other kinds, and steps that start together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.pipelines import Pipelines
from tests.support.waiting import eventually_sync

from lockstep.api.pipeline import RUN_LABEL

Json = dict[str, Any]
EXAMPLES = Path(__file__).parents[3] / "examples" / "pipelines"
KIND = {"apiVersion": "lockstep.dev/v1alpha1"}
MAIN = {"name": "main", "image": "none", "command": ["true"]}
TRUE = {"restartPolicy": "Never", "containers": [MAIN]}
POD = {"metadata": {}, "spec": TRUE}

PYTORCH = {"spec": {"containers": [{**MAIN, "name": "pytorch"}]}}
pytestmark = pytest.mark.timeout(300)


def jobs() -> dict[str, Json]:
    """Return jobs of other dialects, each of pods that end at once."""
    job = {"completions": 2, "parallelism": 2, "template": POD}
    replicated = [{"name": "w", "replicas": 2, "template": {"spec": job}}]
    return {
        "Job": {"apiVersion": "batch/v1", "spec": job},
        "JobSet": {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "spec": {"replicatedJobs": replicated},
        },
        "PyTorchJob": {
            "apiVersion": "kubeflow.org/v1",
            "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": PYTORCH}}},
        },
    }


def run(name: str, tasks: list[Json], templates: Json, **more: Any) -> Json:
    meta = {"name": name}
    spec = {"templates": {"main": {"graph": {"tasks": tasks}}, **templates}, **more}
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "PipelineRun",
        "metadata": meta,
        "spec": spec,
    }


def end(world: Pipelines, name: str, within: float = 90) -> Json:
    eventually_sync(lambda: world.status(name).get("completionTime"), within, f"{name} is over")
    return world.status(name)


def test_a_step_may_be_a_job_of_another_kind(world: Pipelines) -> None:
    kinds = jobs()
    templates = {
        kind.lower(): {"object": {"object": {**tree, "kind": kind}}} for kind, tree in kinds.items()
    }
    tasks = [{"name": name, "template": name} for name in templates]
    world.submit(run("kinds", tasks, templates))
    status = end(world, "kinds")
    said = {name: one.get("message") for name, one in status["steps"].items()}
    assert status["phase"] == "Succeeded", said
    made = [
        one["object"].partition("/")[0] for one in status["steps"].values() if one.get("object")
    ]
    assert sorted(made) == sorted(kinds)


def test_steps_of_a_gang_start_together_or_not_at_all(world: Pipelines) -> None:
    meets = "import os, sys, time; p = sys.argv[1]; open(p + sys.argv[2], 'w').close()"
    meets += "\nwhile not os.path.exists(p + sys.argv[3]): time.sleep(0.02)"
    place = world.table.parent / "met-"

    def one(mine: str, other: str, cpu: str) -> Json:
        command = [sys.executable, "-c", meets, str(place), mine, other]
        container = {"name": "main", "image": "none", "command": command}
        container["resources"] = {"requests": {"cpu": cpu}}
        return {"pod": {"template": {"spec": {"containers": [container]}}}}

    def both(name: str, cpu: str) -> Json:
        tasks = [{"name": n, "template": n, "gang": "pair"} for n in "ab"]
        templates = {"a": one("a", "b", "10m"), "b": one("b", "a", cpu)}
        return run(name, tasks, templates, maxWait="2s")

    world.submit(both("pair", "10m"))
    assert end(world, "pair")["phase"] == "Succeeded"
    # The first would fit by itself; it does not start without the second.
    world.submit(both("odd-pair", "10000"))
    status = end(world, "odd-pair")
    assert status["phase"] == "Failed"
    pods = world.plane.read("api/v1/namespaces/default/pods")["items"]
    own = [p for p in pods if p["metadata"]["labels"].get(RUN_LABEL) == "odd-pair"]
    assert [p["spec"].get("nodeName") for p in own if p["spec"].get("nodeName")] == []


def test_a_new_version_of_a_model_starts_the_example(world: Pipelines) -> None:
    example = EXAMPLES / "triggered" / "check.yaml"
    given = ("--name", "check", "--model", "faces", "-p", "uri=${{ event.uri }}")
    said = world.plane.ok("pipeline", "trigger", str(example), *given)
    assert said == "pipelinetrigger/check created\n"
    model = {"model": "faces", "version": "1", "uri": "s3://b/faces/1"}
    world.submit({**KIND, "kind": "ModelVersion", "metadata": {"name": "f-1"}, "spec": model})
    triggers = "apis/lockstep.dev/v1alpha1/namespaces/default/pipelinetriggers/check"

    def made() -> str:
        return str(world.plane.read(triggers).get("status", {}).get("lastRun", ""))

    eventually_sync(made, 30.0, "a run is made")
    assert end(world, made())["phase"] == "Succeeded"
    assert world.plane.ok("pipeline", "logs", made()) == "checks s3://b/faces/1\n"


def test_logs_of_every_try_stay_readable(world: Pipelines) -> None:
    mark = world.table.parent / "tried"
    scripts = {
        "late": "echo late began; sleep 100",
        "twice": f"test -e {mark} && echo went well && exit; touch {mark}; echo went badly; exit 1",
    }
    templates = {
        name: {
            "pod": {
                "template": {"spec": {"containers": [{**MAIN, "command": ["sh", "-c", script]}]}}
            }
        }
        for name, script in scripts.items()
    }
    more = {"late": {"timeout": "2s"}, "twice": {"retry": {"limit": 1}}}
    tasks = [{"name": name, "template": name, **more[name]} for name in scripts]
    world.submit(run("tries", tasks, templates, sweep={"strategy": "OnPodCompletion"}))
    assert end(world, "tries")["phase"] == "Failed"
    eventually_sync(lambda: not world.pods("tries"), 60, "its pods are gone")
    assert world.plane.ok("pipeline", "logs", "tries", "late") == "late began\n"
    both = world.plane.ok("pipeline", "logs", "tries", "twice").splitlines()
    assert both[1::2] == ["went badly", "went well"]
    assert [line.partition(", ")[2] for line in both[::2]] == ["try 1 of 2)", "try 2 of 2)"]
