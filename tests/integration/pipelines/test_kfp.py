"""Pipelines compiled by the real kfp SDK, run on the embedded control plane."""

from __future__ import annotations

from pathlib import Path

from tests.support.pipelines import KFP, Pipelines


def test_two_components_hand_on_an_artefact(world: Pipelines) -> None:
    name = world.run(KFP / "squares.yaml", "-p", "rows=7")
    status = world.status(name)
    assert status["outputs"] == {"Output": 91}
    assert status["steps"]["main.make"]["outputs"]["data"]["metadata"] == {"rows": 7}
    assert len(world.pods(name)) == 2
    kept = world.bucket.server.buckets.rglob("main.make/0/data")
    assert [one.read_text() for one in kept][-1].splitlines()[-1] == "36"
    page = world.plane.ok("pipeline", "describe", name)
    assert "├─ make    Succeeded" in page
    assert "└─ total   Succeeded   make" in page

    again = world.run(KFP / "squares.yaml", "-p", "rows=7")
    assert world.pods(again) == []
    assert world.status(again)["outputs"] == {"Output": 91}
    assert f"from {name}/main.total" in world.plane.ok("pipeline", "describe", again)


def test_a_wrong_parameter_is_refused_before_any_pod(world: Pipelines) -> None:
    said = world.plane.run("pipeline", "run", str(KFP / "squares.yaml"), "-p", "row=7")
    assert said.returncode == 2
    assert "spec.arguments.row; main has the inputs rows" in said.stderr


def test_conditions_loops_retries_and_nested_graphs(world: Pipelines, tmp_path: Path) -> None:
    name = world.run(KFP / "shapes.yaml", "-p", f"place={tmp_path}")
    status = world.status(name)
    steps = status["steps"]
    assert status["outputs"] == {"Output": "WON/NONE"}
    ends = {branch: steps[f"main.condition-branches-1.{branch}"]["phase"] for branch in BRANCHES}
    assert ends == {"condition-2": "Succeeded", "condition-3": "Skipped", "condition-4": "Skipped"}
    assert steps["main.add"]["outputs"] == {"Output": 14}
    assert steps["main.inner"]["outputs"] == {"Output": 16}
    assert steps["main.fail-at-first"]["attempt"] == 2
    assert steps["main.for-loop-7.0.say-4"]["outputs"] == {"Output": "x/y"}
    assert steps["main.add-2"]["phase"] == "Succeeded"


BRANCHES = ("condition-2", "condition-3", "condition-4")


def test_an_exit_handler_is_told_what_went_wrong(world: Pipelines) -> None:
    world.bucket.put("words/found.txt", b"a word")
    words = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}}
    world.submit({**words, "data": {"greeting": "hello"}})
    given = ("-p", "uri=s3://runs/words/found.txt", "--storage-secret", "store")
    where = ("--root", "s3://runs/p", "--wait", "--timeout", "60", "--name", "endings")
    said = world.plane.run("pipeline", "run", str(KFP / "endings.yaml"), *given, *where)
    assert said.returncode == 1
    assert "exit-handler-1: read: main ended with 1" in said.stderr
    steps = world.status("endings")["steps"]
    assert steps["main.note-end"]["phase"] == "Succeeded", world.plane.ok(
        "pipeline", "logs", "endings", "note-end"
    )
    log = world.plane.ok("pipeline", "logs", "endings", "note-end")
    assert "FAILED: read: main ended with 1 (the end, hello)" in log
    assert "this goes wrong" in world.plane.ok("pipeline", "logs", "endings", "read")


def test_a_component_may_be_a_job_of_two_ranks(world: Pipelines) -> None:
    name = world.run(KFP / "training.yaml")
    status = world.status(name)
    kind, _, job = status["steps"]["main.train"]["object"].partition("/")
    assert kind == "TrainingJob"
    assert status["outputs"] == {"Output": f"{job} is done"}
    found = world.plane.read(f"apis/lockstep.dev/v1alpha1/namespaces/default/trainingjobs/{job}")
    assert found["status"]["phase"] == "Succeeded"
    assert found["spec"]["roles"][0]["replicas"] == 2
