"""The controller of runs, ended at each of its calls: each step is run once, and the run ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api.core import CONFIG_MAPS, PODS
from lockstep.api.names import ATTEMPT_LABEL
from lockstep.api.pipeline import KEPT_LABEL, PIPELINE_RUNS, RUN_LABEL, STEP_ANNOTATION
from lockstep.kube.client import Client
from lockstep.kube.manager import Manager
from lockstep.pipelines.main import add_pipelines

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


async def test_a_run_ends_well_in_any_weather(arena: Arena) -> None:
    await arena.weathers(story(), range(arena.seeds))
