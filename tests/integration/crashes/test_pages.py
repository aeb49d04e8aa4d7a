"""The controllers of Tensorboards, of jobs and users, and Profiles, ended at each call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process

from lockstep.api.core import NAMESPACES
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.team import TEAMS
from lockstep.api.training import TRAINING_JOBS
from lockstep.compat import dialects
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.compat.kubeflow.profile import PROFILES
from lockstep.compat.kubeflow.tensorboard import TENSORBOARDS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.notebooks.kind_ownership import KindOwnership
from lockstep.notebooks.main import add_notebooks
from lockstep.runtime.manager import Manager
from lockstep.tenants.main import add_profiles, add_teams

Json = dict[str, Any]
BOARD, PROFILE, JOB = "curves", "sight", "trained"
JOB_BOARD = f"{JOB}-tensorboard"


async def pages(client: Client, ready: Callable[[str], None]) -> None:
    """Control notebooks, Tensorboards, teams and profiles, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_notebooks(manager)
    add_teams(manager)
    add_profiles(manager, KindOwnership(client, PROFILES).ours)
    await manager.run(ready)


async def told(stage: Stage) -> None:
    """A Tensorboard and a profile come, and a quota and a directory change."""
    client = stage.client
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
    await ensure_foreign(client, dialects.manifests(["kubeflow"]))
    for resource, name, space in (
        (TENSORBOARDS, BOARD, "default"),
        (NOTEBOOKS, BOARD, "default"),
        (TENSORBOARDS, JOB_BOARD, "default"),
        (NOTEBOOKS, JOB_BOARD, "default"),
        (PROFILES, PROFILE, None),
        (TEAMS, PROFILE, None),
    ):
        with contextlib.suppress(NotFound):
            await client.delete(resource, name, space)
    stage.start()
    board = {"metadata": {"name": BOARD}, "spec": {"logspath": "pvc://results/one"}}
    await _create(stage, TENSORBOARDS, board, "default")
    owner = {"kind": "User", "name": "ana"}
    spec = {"owner": owner, "resourceQuotaSpec": {"hard": {"pods": "5", "services": "2"}}}
    await _create(stage, PROFILES, {"metadata": {"name": PROFILE}, "spec": spec}, None)
    await stage.until(lambda: _stands(stage, "/logs/one", {"pods": "5", "services": "2"}), "made")
    await client.patch(TENSORBOARDS, BOARD, {"spec": {"logspath": "pvc://results/two"}}, "default")
    change = {"spec": {"resourceQuotaSpec": {"hard": {"pods": "7", "services": None}}}}
    await client.patch(PROFILES, PROFILE, change)
    await stage.until(lambda: _stands(stage, "/logs/two", {"pods": "7"}), "changed")
    await _train(stage)


async def _train(stage: Stage) -> None:
    """A job that names where its events go starts, and names another place."""
    client = stage.client
    pod = {"spec": {"containers": [{"name": "main", "image": "img", "command": ["true"]}]}}
    role = {"name": "worker", "template": pod}
    spec = {"framework": "plain", "roles": [role], "tensorboard": "pvc://results/three"}
    await client.create(TRAINING_JOBS, {"metadata": {"name": JOB}, "spec": spec}, "default")
    started = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    await client.patch(TRAINING_JOBS, JOB, started, "default", subresource="status")
    await stage.until(lambda: _shows(stage, JOB_BOARD, "/logs/three"), "the job's is made")
    await client.patch(TRAINING_JOBS, JOB, {"spec": {"tensorboard": "pvc://results/4"}}, "default")
    await stage.until(lambda: _shows(stage, JOB_BOARD, "/logs/4"), "the job's follows")


async def _shows(stage: Stage, name: str, place: str) -> bool:
    with contextlib.suppress(NotFound):
        notebook = await stage.client.get(NOTEBOOKS, name, "default")
        return f"--logdir={place}" in notebook.pod_spec["containers"][0]["command"]
    return False


async def _create(stage: Stage, resource: Any, body: Json, space: str | None) -> None:
    """Create an object; a kind that was just installed is served a moment later."""

    async def created() -> bool:
        with contextlib.suppress(NotFound):
            await stage.client.create(resource, body, space)
            return True
        return False

    await stage.until(created, f"{resource.kind} is served")


async def _stands(stage: Stage, place: str, quota: dict[str, str]) -> bool:
    with contextlib.suppress(NotFound):
        team = await stage.client.get(TEAMS, PROFILE)
        profile = await stage.client.get(PROFILES, PROFILE)
        told = profile.status.get("conditions") or [{}]
        return (
            await _shows(stage, BOARD, place)
            and {key: str(amount) for key, amount in team.spec.quota.items()} == quota
            and told[-1].get("type") == "Successful"
        )
    return False


async def outcome(stage: Stage) -> object:
    """Return what was made of them."""
    notebooks = (await stage.client.list(NOTEBOOKS, "default")).items
    teams = [one for one in (await stage.client.list(TEAMS)).items if one.metadata.name == PROFILE]
    return (
        [(one.metadata.name, len(one.metadata.owner_references)) for one in notebooks],
        [(one.metadata.name, [m.name for m in one.spec.members]) for one in teams],
    )


def story() -> Scenario:
    return Scenario(in_process(pages), told, outcome)


async def test_each_page_has_one_object_wherever_its_controller_ends(arena: Arena) -> None:
    await arena.endures(story())


@pytest.mark.real_sample()
async def test_each_page_has_one_object_in_any_weather(arena: Arena) -> None:
    await arena.weathers(story(), range(arena.seeds))
