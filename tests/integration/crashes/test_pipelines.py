"""The controllers of runs and of what makes them, ended at each of their calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api.core import CONFIG_MAPS, PODS
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.names import ATTEMPT_LABEL
from lockstep.api.pipeline import KEPT_LABEL, PIPELINE_RUNS, RUN_LABEL, STEP_ANNOTATION
from lockstep.api.pipeline_trigger import EVENT_ANNOTATION, PIPELINE_TRIGGERS
from lockstep.compat import dialects
from lockstep.compat.kfp.kinds import SCHEDULED_WORKFLOWS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import NotFound
from lockstep.pipelines.main import add_pipelines
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
RUN = "journey"
CONTAINERS = [{"name": "main", "image": "none", "command": ["true"]}]


async def pipelines(client: Client, ready: Callable[[str], None]) -> None:
    """Control runs, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_pipelines(manager)
    await manager.run(ready)


def spec() -> Json:
    note = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "${{ run.name }}"}}
    tasks = [
        {"name": "first", "template": "step", "keep": {}},
        {"name": "flaky", "template": "step", "retry": {"limit": 1}, "after": ["first"]},
        {"name": "note", "template": "note", "after": ["first"]},
        {"name": "each", "template": "step", "loop": {"items": "[1, 2]"}, "after": ["note"]},
        {"name": "exit", "template": "step", "exit": True, "after": ["flaky", "each"]},
    ]
    return {
        "templates": {
            "main": {"graph": {"tasks": tasks}},
            "step": {"pod": {"template": {"spec": {"containers": CONTAINERS}}}},
            "note": {"object": {"object": note}},
        }
    }


async def journey(stage: Stage) -> None:
    """A run goes its way; the test is the node of its pods."""
    stage.start()
    await stage.client.create(PIPELINE_RUNS, {"metadata": {"name": RUN}, "spec": spec()}, "default")

    async def over() -> bool:
        await _play(stage.client)
        run = await stage.client.get(PIPELINE_RUNS, RUN, "default")
        return run.status.completion_time is not None

    await stage.until(over, "the run is over")


async def _play(client: Client) -> None:
    """Let every pod come to its end: the first try of ``flaky`` to a bad one."""
    listing = await client.list(PODS, "default", label_selector=RUN_LABEL)
    for pod in listing.items:
        if pod.status.phase in ("Succeeded", "Failed"):
            continue
        bad = _step(pod) == ("main.flaky", "0")
        code = {"exitCode": 1 if bad else 0}
        ended = {"name": "main", "state": {"terminated": code}}
        status = {"phase": "Failed" if bad else "Succeeded", "containerStatuses": [ended]}
        await client.patch(
            PODS, pod.metadata.name, {"status": status}, "default", subresource="status"
        )


def _step(pod: Any) -> tuple[str, str]:
    meta = pod.metadata
    return meta.annotations[STEP_ANNOTATION], meta.labels[ATTEMPT_LABEL]


async def outcome(stage: Stage) -> object:
    """Return how run and steps ended, and what was made."""
    client = stage.client
    run = await client.get(PIPELINE_RUNS, RUN, "default")
    pods = (await client.list(PODS, "default", label_selector=RUN_LABEL)).items
    kept = (await client.list(CONFIG_MAPS, "default", label_selector=KEPT_LABEL)).items
    notes = (await client.list(CONFIG_MAPS, "default", label_selector=RUN_LABEL)).items
    steps = {name: (one.phase, one.attempt) for name, one in run.status.steps.items()}
    made = {name: count for (name, _), count in stage.made().items() if name.startswith(RUN)}
    return (
        run.status.phase,
        steps,
        sorted(_step(pod) for pod in pods),
        [one.data["from"] for one in kept],
        [one.data for one in notes],
        sorted(made.values()),
    )


def story() -> Scenario:
    return Scenario(in_process(pipelines), journey, outcome)


async def test_a_run_ends_well_wherever_its_controller_ends(arena: Arena) -> None:
    await arena.endures(story())


@pytest.mark.real_sample()
async def test_a_run_ends_well_in_any_weather(arena: Arena) -> None:
    await arena.weathers(story(), range(arena.seeds))


WAIT: Json = {"templates": {"main": {"suspend": {"duration": "0s"}}}}
OFTEN: Json = {"periodicSchedule": {"intervalSecond": 3600, "startTime": "2026-01-01T00:00:00Z"}}
UNTIL = "2026-01-01T02:30:00Z"
REGISTER: Json = {
    "apiVersion": "lockstep.dev/v1alpha1",
    "kind": "ModelVersion",
    "metadata": {"name": "${{ inputs.name }}-x"},
    "spec": {"model": "m", "version": "${{ inputs.name }}-x", "uri": "s3://b/m"},
}


async def makers(stage: Stage) -> None:
    """A recurring run has two times to make up for, and a model's version starts a loop."""
    client = stage.client
    await ensure_foreign(client, dialects.manifests(["kfp"]))
    with contextlib.suppress(NotFound):
        await client.delete(SCHEDULED_WORKFLOWS, "often", "default")
    stage.start()
    often = {"periodicSchedule": {**OFTEN["periodicSchedule"], "endTime": UNTIL}}
    swf = {"trigger": often, "maxConcurrency": 9, "workflow": {"spec": WAIT}}
    await client.create(
        SCHEDULED_WORKFLOWS, {"metadata": {"name": "often"}, "spec": swf}, "default"
    )
    template = {"inputs": ["name"], "object": {"object": REGISTER}}
    spec = {"templates": {"main": template}, "arguments": {"name": "${{ event.name }}"}}
    wanted = {"modelVersion": {"model": "m"}, "run": {"spec": spec}, "maxChain": 2}
    await client.create(
        PIPELINE_TRIGGERS, {"metadata": {"name": "each"}, "spec": wanted}, "default"
    )
    first = {"metadata": {"name": "v"}, "spec": {"model": "m", "version": "v", "uri": "s3://b/v"}}
    await client.create(MODEL_VERSIONS, first, "default")

    async def over() -> bool:
        runs = (await client.list(PIPELINE_RUNS, "default")).items
        trigger = await client.get(PIPELINE_TRIGGERS, "each", "default")
        ended = sum(run.status.completion_time is not None for run in runs)
        return ended == 5 and trigger.status.passed_over == 1

    await stage.until(over, "all runs are over, and the loop has ended")


async def made(stage: Stage) -> object:
    """Return what was made of which, and what the makers say."""
    client = stage.client
    runs = (await client.list(PIPELINE_RUNS, "default")).items
    trigger = await client.get(PIPELINE_TRIGGERS, "each", "default")
    often = await client.get(SCHEDULED_WORKFLOWS, "often", "default")
    versions = (await client.list(MODEL_VERSIONS, "default")).items
    return (
        sorted(run.metadata.annotations.get(EVENT_ANNOTATION, "often") for run in runs),
        [run.status.phase for run in runs],
        sorted(one.metadata.name for one in versions),
        len(trigger.status.handled),
        trigger.status.passed_over,
        trigger.status.message,
        often.status["trigger"]["lastTriggeredTime"],
    )


async def test_what_makes_runs_makes_each_once_wherever_it_ends(arena: Arena) -> None:
    await arena.endures(Scenario(in_process(pipelines), makers, made))
