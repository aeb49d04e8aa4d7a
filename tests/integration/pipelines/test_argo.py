"""Argo Workflows as they are, on the embedded control plane."""

from __future__ import annotations

from typing import Any

import yaml
from tests.support.pipelines import ARGO, Pipelines
from tests.support.waiting import eventually_sync

WORKFLOWS = "apis/argoproj.io/v1alpha1/namespaces/default/workflows"
OVER = ("Succeeded", "Failed", "Error")


def submit(world: Pipelines, name: str, file: str, **spec: Any) -> None:
    tree = yaml.safe_load((ARGO / file).read_text())
    meta = {**tree["metadata"], "name": name}
    world.submit({**tree, "metadata": meta, "spec": {**tree["spec"], **spec}})


def status(world: Pipelines, name: str) -> dict[str, Any]:
    found: dict[str, Any] = world.plane.read(f"{WORKFLOWS}/{name}").get("status", {})
    return found


def end(world: Pipelines, name: str) -> dict[str, Any]:
    eventually_sync(lambda: status(world, name).get("phase") in OVER, 60.0, f"{name} is over")
    return status(world, name)


def test_steps_repeat_themselves_until_a_condition_holds(world: Pipelines) -> None:
    submit(world, "coin", "coinflip.yaml")
    found = end(world, "coin")
    assert found["phase"] == "Succeeded", found
    nodes = {one["name"]: one for one in found["nodes"].values()}
    assert nodes["coin.tails.tails.flip"]["outputs"]["result"] == "heads"
    assert nodes["coin.tails.tails.heads"]["phase"] == "Succeeded"
    assert nodes["coin.heads"]["type"] == "Skipped"
    assert found["progress"] == "4/4"
    assert "it was heads" in world.plane.ok("pipeline", "logs", "coin", "heads")


def test_a_dag_loops_hands_on_artefacts_and_mends_a_failure(world: Pipelines) -> None:
    submit(world, "gem", "diamond.yaml")
    found = end(world, "gem")
    assert found["phase"] == "Succeeded", found
    nodes = {one["name"]: one for one in found["nodes"].values()}
    assert nodes["gem.mend"]["phase"] == "Succeeded"
    assert nodes["gem.make"]["outputs"]["parameters"] == [{"name": "count", "value": "3"}]
    steps = world.status("gem")["steps"]
    assert steps["lockstep-main.main.bad"]["attempt"] == 1
    said = {step: world.plane.ok("pipeline", "logs", "gem", step) for step in ("read", "exit")}
    assert said["read"] == "hello world\n3\n"
    assert said["exit"] == "ended Succeeded of gem\n"
    assert "ben 4" in world.plane.ok("pipeline", "logs", "gem", "lockstep-main.main.each.1")


def test_daemons_sets_hooks_locks_and_changed_pods_play_together(world: Pipelines) -> None:
    submit(world, "beside", "beside.yaml")
    found = end(world, "beside")
    assert found["phase"] == "Succeeded", found
    said = {
        step: world.plane.ok("pipeline", "logs", "beside", f"lockstep-main.main.{step}")
        for step in ("end", "ask-exit-hook")
    }
    assert said == {"end": "first 0\n", "ask-exit-hook": "hook 200 patched\n"}
    eventually_sync(lambda: _gone(world), 30.0, "the daemon and the swept pod are gone")


def _gone(world: Pipelines) -> bool:
    pods = " ".join(world.pods("beside"))
    return "main-server" not in pods and "main-ask-" not in pods.replace("main-ask-exit", "")


def test_a_lock_is_one_for_all_workflows(world: Pipelines) -> None:
    first = yaml.safe_load((ARGO / "beside.yaml").read_text())
    wait: dict[str, Any] = {"name": "wait", "suspend": {}}
    lock = {"synchronization": {"mutexes": [{"name": "one-for-all"}]}}
    spec: dict[str, Any] = {"entrypoint": "wait", "templates": [{**wait, **lock}]}
    for name in ("holds", "waits"):
        world.submit({**first, "metadata": {"name": name}, "spec": spec})
        eventually_sync(lambda name=name: status(world, name).get("phase") == "Running", 30.0, name)  # type: ignore[misc]
    step = world.status("waits")["steps"]["lockstep-main.main"]
    assert step["phase"] == "Waiting"
    assert "waits for default/mutex/one-for-all" in step["message"]
    world.plane.ok("pipeline", "resume", "holds")
    assert end(world, "holds")["phase"] == "Succeeded"
    world.plane.ok("pipeline", "resume", "waits")
    assert end(world, "waits")["phase"] == "Succeeded"


def test_what_is_not_served_is_refused_by_name(world: Pipelines) -> None:
    submit(world, "odd", "coinflip.yaml", archiveLogs=True)
    found = end(world, "odd")
    assert found["phase"] == "Error"
    assert "spec.archiveLogs; it is not served by Lockstep" in found["message"]
    assert world.pods("odd") == []


def test_a_workflow_stops_where_it_is_told_to(world: Pipelines) -> None:
    wait = {"name": "wait", "suspend": {}}
    tree = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "halt"}}
    world.submit({**tree, "spec": {"entrypoint": "wait", "templates": [wait]}})
    eventually_sync(lambda: status(world, "halt").get("phase") == "Running", 30.0, "it runs")
    patch = {**tree, "spec": {"entrypoint": "wait", "templates": [wait], "shutdown": "Stop"}}
    world.submit(patch)
    assert end(world, "halt")["phase"] == "Failed"
