"""The job controller, ended at each of its calls: no job lost, no pod made twice.

The scheduler and the nodes beside it are the real ones, and nothing happens to them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.scheduler import add_gang
from tests.support.stories import IMPORTANT, add_importance, stand

from lockstep.api.core import CONFIG_MAPS, LEASES, PODS, ROLE_BINDINGS, ROLES, SECRETS, SERVICES
from lockstep.api.gang import GANGS
from lockstep.api.names import (
    ATTEMPT_LABEL,
    FAIL_ANNOTATION,
    JOB_LABEL,
    RANK_ANNOTATION,
    REPORT_ANNOTATION,
    RUNTIME_ANNOTATION,
)
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.kube.errors import NotFound

Json = dict[str, Any]
Story = Callable[[Stage], Awaitable[None]]
JOB = "digits"


def role(name: str = "worker", replicas: int = 2, *, gpus: int = 4, **more: Any) -> Json:
    container: Json = {"name": "main", "image": "none", "command": more.pop("command", ["train"])}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    if container["command"] is None:
        del container["command"]
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


async def submit(stage: Stage, *roles: Json, framework: str = "pytorch", **spec: Any) -> None:
    """Start the controller, submit the job, and wait until its pods run."""
    stage.start()
    body = {
        "metadata": {"name": JOB, "namespace": "default"},
        "spec": {"framework": framework, "roles": list(roles), "simulated": True, **spec},
    }
    await stage.client.create(TRAINING_JOBS, body)
    await runs(stage)


async def edit(stage: Stage, **spec: Any) -> None:
    await stage.client.patch(TRAINING_JOBS, JOB, {"spec": spec}, "default")


async def job(stage: Stage) -> TrainingJob | None:
    try:
        return await stage.client.get(TRAINING_JOBS, JOB, "default")
    except NotFound:
        return None


async def runs(stage: Stage, *, attempt: int = 0, pods: int | None = None, others: int = 0) -> None:
    """Wait until all pods of an attempt run, as the job's status says too, beside some *others*."""

    async def look() -> bool:
        found = await job(stage)
        assert found is not None
        wanted = sum(r.replicas for r in found.spec.roles) if pods is None else pods
        there = (await stage.client.list(PODS, "default")).items
        running = [
            p
            for p in there
            if p.status.phase == "Running" and p.metadata.labels.get(ATTEMPT_LABEL) == str(attempt)
        ]
        status = found.status
        return len(there) - others == len(running) == wanted and (status.phase, status.attempt) == (
            "Running",
            attempt,
        )

    await stage.until(look, f"attempt {attempt} runs")


async def ends(stage: Stage, *names: str) -> None:
    """Let pods end well."""
    await _annotate(stage, names, {RUNTIME_ANNOTATION: "0"})


async def fails(stage: Stage, *names: str) -> None:
    """Let pods fail."""
    await _annotate(stage, names, {FAIL_ANNOTATION: "1"})


async def _annotate(stage: Stage, names: tuple[str, ...], wish: dict[str, str]) -> None:
    for name in names:
        change = {"metadata": {"annotations": wish}}
        await stage.client.patch(PODS, f"{JOB}-{name}", change, "default")


async def is_(stage: Stage, phase: str) -> None:
    async def look() -> bool:
        found = await job(stage)
        return found is not None and found.status.phase == phase

    await stage.until(look, phase)


async def pytorch(stage: Stage) -> None:
    await submit(stage, role())
    await ends(stage, "worker-0", "worker-1")
    await is_(stage, "Succeeded")


async def plain(stage: Stage) -> None:
    await submit(stage, role(), role("helper", 1, gpus=0), framework="plain")
    await ends(stage, "worker-0", "worker-1", "helper-0")
    await is_(stage, "Succeeded")


async def mpi(stage: Stage) -> None:
    launcher = role("launcher", 1, gpus=0, command=["mpirun", "hostname"])
    workers = role("worker", 2, command=None)
    await submit(stage, launcher, workers, framework="mpi", runPolicy={"cleanPods": "All"})
    await ends(stage, "launcher-0")
    await is_(stage, "Succeeded")


async def failure_and_restart(stage: Stage) -> None:
    await submit(stage, role(), launcher="None")
    await fails(stage, "worker-1")
    await runs(stage, attempt=1)
    await ends(stage, "worker-0", "worker-1")
    await is_(stage, "Succeeded")


async def restarts_used_up(stage: Stage) -> None:
    await submit(stage, role(), launcher="None", recovery={"maxRestarts": 1})
    await fails(stage, "worker-1")
    await runs(stage, attempt=1)
    await fails(stage, "worker-0")
    await is_(stage, "Failed")


async def pods_lost(stage: Stage) -> None:
    await submit(stage, role(), launcher="None")
    await stage.client.delete(PODS, f"{JOB}-worker-0", "default", grace_seconds=0)
    await runs(stage, attempt=1)


async def suspension(stage: Stage) -> None:
    await submit(stage, role())
    await edit(stage, suspend=True)

    async def given_back() -> bool:
        found = await job(stage)
        assert found is not None
        return (
            found.status.phase == "Suspended"
            and not (await stage.client.list(PODS, "default")).items
        )

    await stage.until(given_back, "the place is given back")
    await edit(stage, suspend=False)
    await runs(stage, attempt=1)


async def elastic(stage: Stage) -> None:
    workers = role(replicas=2, min=1, max=3)
    await submit(stage, workers)
    await edit(stage, roles=[{**workers, "replicas": 3}])
    await runs(stage, pods=3)
    await fails(stage, "worker-2")

    async def replaced() -> bool:
        return stage.audit.made[(f"{JOB}-worker-2", "0")] == 2

    await stage.until(replaced, "another worker-2")
    await runs(stage, pods=3)
    await edit(stage, roles=[{**workers, "replicas": 1}])
    await runs(stage, pods=1)


async def ranks_anew(stage: Stage) -> None:
    """Launchers gather, a rank fails, and the ranks go on where they are."""
    await submit(stage, role())
    await report(stage, 1, "Ready")
    await world_is(stage, 1, "Run")
    await report(stage, 1, "Failed", ended={"rank": 0, "at": 1.0, "signal": 9})
    await world_is(stage, 2, "Gather")
    await report(stage, 2, "Ready", snapshots=[{"local": 0, "step": 7}])
    await world_is(stage, 2, "Run")
    await report(stage, 2, "Done")
    await world_is(stage, 2, "Leave")
    await ends(stage, "worker-0", "worker-1")
    await is_(stage, "Succeeded")


async def one_replaced(stage: Stage) -> None:
    """A pod with a launcher is lost: that one alone is made again."""
    await submit(stage, role())
    await fails(stage, "worker-1")

    async def replaced() -> bool:
        return stage.audit.made[(f"{JOB}-worker-1", "0")] == 2

    await stage.until(replaced, "another worker-1")
    await runs(stage)
    await world_is(stage, 2, "Gather")


async def report(stage: Stage, generation: int, state: str, **more: Any) -> None:
    """Let the launchers, which simulated pods lack, report."""
    for pod in (await stage.client.list(PODS, "default", label_selector=JOB_LABEL)).items:
        said = {"uid": pod.metadata.uid, "generation": generation, "state": state, **more}
        change = {"metadata": {"annotations": {REPORT_ANNOTATION: json.dumps(said)}}}
        await stage.client.patch(LEASES, pod.metadata.name, change, "default")


async def world_is(stage: Stage, generation: int, phase: str) -> None:
    async def look() -> bool:
        there = await stage.client.get(CONFIG_MAPS, f"{JOB}-world", "default")
        world = json.loads(there.data["world"])
        return (world["generation"], world["phase"]) == (generation, phase)

    await stage.until(look, f"generation {generation}: {phase}")


async def preemption(stage: Stage) -> None:
    """The job makes way for a more important gang, and has its place back when that is over."""
    client = stage.client
    await add_importance(client)
    await submit(stage, role(replicas=4, gpus=8), launcher="None", recovery={"maxRestarts": 0})
    await add_gang(client, "vip", 2, gpus=8, priorityClassName=IMPORTANT)
    await stand(stage, "vip-0", "vip-1")
    await is_(stage, "Restarting")
    for name in ("vip-0", "vip-1"):
        await client.patch(
            PODS, name, {"metadata": {"annotations": {RUNTIME_ANNOTATION: "0"}}}, "default"
        )
    await runs(stage, attempt=1, others=2)


async def layout(stage: Stage) -> None:
    """A job whose ranks are laid out, and laid out anew after a failure."""
    split = {"tensor": 8, "pipeline": 2}
    await submit(stage, role(replicas=4, gpus=8), launcher="None", parallelism=split)
    await fails(stage, "worker-2")
    await runs(stage, attempt=1)


async def deletion(stage: Stage) -> None:
    await submit(stage, role())
    await stage.client.delete(TRAINING_JOBS, JOB, "default", propagation="Foreground")

    async def gone() -> bool:
        return await job(stage) is None

    await stage.until(gone, "the job is gone")


async def outcome(stage: Stage) -> object:
    """Return how the job is, all that it has made, and how often."""
    found = await job(stage)
    status = found.status if found else None
    labelled = {
        res.kind: sorted(
            o.metadata.name
            for o in (await stage.client.list(res, "default", label_selector=JOB_LABEL)).items
        )
        for res in (GANGS, SERVICES, CONFIG_MAPS, SECRETS, LEASES, ROLES, ROLE_BINDINGS)
    }
    return {
        "job": status
        and (status.phase, status.attempt, status.restarts, status.replacing, status.generation),
        "conditions": status and sorted((c.type, c.status, c.reason) for c in status.conditions),
        "replicas": status
        and {n: (r.created, r.active) for n, r in status.replica_statuses.items()},
        "pods": {
            p.metadata.name: (
                p.status.phase,
                p.metadata.labels.get(ATTEMPT_LABEL),
                p.metadata.annotations.get(RANK_ANNOTATION),
            )
            for p in (await stage.client.list(PODS, "default")).items
        },
        "objects": labelled,
        "made": stage.made() if found else sorted(stage.audit.made),
    }


STORIES: dict[str, Story] = {
    "a pytorch job runs to its end": pytorch,
    "a plain job runs to its end": plain,
    "an mpi job runs to its end": mpi,
    "a worker fails": failure_and_restart,
    "a rank fails": ranks_anew,
    "a pod with a launcher fails": one_replaced,
    "workers fail until the job has": restarts_used_up,
    "a pod is deleted": pods_lost,
    "a job is suspended and resumed": suspension,
    "an elastic job grows, loses one, shrinks": elastic,
    "a job makes way for another": preemption,
    "a job's ranks are laid out": layout,
    "a job is deleted": deletion,
}


def told(story: str) -> Scenario:
    """Return a story with the scheduler and the nodes that it needs."""
    return Scenario(
        in_process(parts.controllers),
        STORIES[story],
        outcome,
        beside=(parts.nodes, parts.scheduler),
        keeps_nodes=True,
    )


@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_wherever_the_controller_ends(
    furnished_arena: Arena, story: str
) -> None:
    await furnished_arena.endures(told(story))


@pytest.mark.real_sample()
@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_in_any_weather(furnished_arena: Arena, story: str) -> None:
    await furnished_arena.weathers(told(story), range(furnished_arena.seeds))
