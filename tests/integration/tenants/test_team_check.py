"""`lockstep team check` on both servers: borders that hold, one that is open, and what is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.control_plane import ControlPlane
from tests.support.teams import controlled, ready
from tests.support.waiting import eventually, eventually_sync

from lockstep.api import queue_policy, team_borders, team_images
from lockstep.api.core import NAMESPACES
from lockstep.api.team import TEAMS
from lockstep.cli import team_check
from lockstep.cli.team_check import LABEL, check
from lockstep.cli.team_traffic import judged
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.tenants.core.objects import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS

Json = dict[str, Any]
SPEC: Json = {
    "members": [{"name": "ana", "role": "Admin"}],
    "queue": {"limit": {"nvidia.com/gpu": 4}},
    "quota": {"requests.cpu": "2"},
    "devices": ["nvidia.com/gpu"],
    "images": ["registry.example.com/vision/*"],
    "network": "Isolated",
}
TEAM: Json = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Team"}
CHECK = ("team", "check", "walled")
POLICIES = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture(params=["server", "real_cluster"], ids=["embedded", "kube-apiserver"])
def any_cluster(request: pytest.FixtureRequest) -> ApiServer:
    """Each server in turn; the real one with the controller that aggregates roles."""
    server: ApiServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
async def client(any_cluster: ApiServer) -> AsyncIterator[Client]:
    async with any_cluster.client() as client:
        await ensure_crds(client)
        policies = (queue_policy, team_borders, team_images)
        for objects in (one.objects() for one in policies):
            plurals = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
            for plural, obj in zip(plurals, objects, strict=True):
                with suppress(AlreadyExists):
                    body = json.dumps(obj).encode()
                    await client.request("POST", f"{POLICIES}/{plural}", body=body)
        async with controlled(any_cluster):
            await client.create(TEAMS, {"metadata": {"name": "walled"}, "spec": SPEC})
            await ready(client, "walled")
            yield client


async def left(client: Client) -> list[str]:
    """Return the names of what checks have left."""
    spaces = (await client.list(NAMESPACES, label_selector=LABEL)).items
    alive = [one.metadata.name for one in spaces if one.metadata.deletion_timestamp is None]
    bound = (await client.list(ROLE_BINDINGS, label_selector=LABEL)).items
    return [*alive, *(one.metadata.name for one in bound)]


async def test_borders_hold_until_one_is_opened_and_is_named(client: Client) -> None:
    async def all_hold() -> list[team_check.Found] | None:
        # Policies of admission count a moment after they are made.
        found = await check(client, await client.get(TEAMS, "walled"))
        return found if {one.result for one in found} <= {"held", "not set", "not tried"} else None

    found = await eventually(all_hold, 60, "every border holds")
    held = {one.border for one in found if one.result == "held"}
    assert held >= {
        "other team's objects",
        "other team's secrets",
        "other team's pods",
        "other team's queue",
        "other team's cost",
        "queue use",
        "what isolates it",
        "rights",
        "images",
        "devices",
        "quota",
    }
    assert [one.tried for one in found if one.border == "podSecurity"] == [""]
    assert await left(client) == []

    everybody = {"kind": "Group", "name": "system:serviceaccounts"}
    view = {"apiGroup": team_check.RBAC, "kind": "ClusterRole", "name": "view"}
    hole = {"metadata": {"name": "hole"}, "roleRef": view, "subjects": [everybody]}
    await client.create(CLUSTER_ROLE_BINDINGS, hole)
    try:

        async def named() -> bool:
            found = await check(client, await client.get(TEAMS, "walled"))
            opened = {one.tried for one in found if one.result == "OPEN"}
            return {"list all pods", "list all queues"} <= opened

        await eventually(named, 60, "the open border is named")
    finally:
        with suppress(NotFound):
            await client.delete(CLUSTER_ROLE_BINDINGS, "hole")


@pytest.mark.parametrize("any_cluster", ["server"], indirect=True, ids=["embedded"])
async def test_check_that_is_stopped_leaves_nothing(any_cluster: ApiServer, client: Client) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lockstep", "team", "check", "walled"),
        env={**os.environ, "KUBECONFIG": str(any_cluster.kubeconfig)},
        stderr=asyncio.subprocess.PIPE,
    )
    await eventually(lambda: left(client), what="the check has begun")
    process.send_signal(signal.SIGINT)
    _, words = await process.communicate()
    # A check that ended before the signal came has told what it found; one that was just ending
    # ends by the signal.
    assert process.returncode in (0, 1, -signal.SIGINT), words
    assert await left(client) == []


@pytest.mark.parametrize(
    ("own", "other", "result"),
    [
        ("Succeeded", "Succeeded", "OPEN"),
        ("Succeeded", "Failed", "held"),
        ("Succeeded", "Pending", "not tried"),
        ("Failed", "Failed", "not tried"),
        ("Failed", "Succeeded", "not tried"),
        ("", "", "not tried"),
    ],
)
def test_network_holds_only_where_the_teams_own_pod_connects(
    own: str, other: str, result: str
) -> None:
    assert judged(own, other)[0] == result


@pytest.mark.timeout(300)
def test_traffic_of_another_teams_pod_is_tried(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "up").start()
    try:
        spec = {"network": "Isolated", "images": ["none"]}
        body = json.dumps({**TEAM, "metadata": {"name": "walled"}, "spec": spec})
        plane.ok("submit", "-f", "-", stdin=body)

        def is_ready() -> bool:
            found = plane.read("apis/lockstep.dev/v1alpha1/teams/walled").get("status", {})
            return [one["status"] for one in found.get("conditions", [])] == ["True"]

        eventually_sync(is_ready, what="the team is ready")
        # Process nodes isolate no network, and the check says so.
        done = plane.run(*CHECK, "--traffic", "none", "-o", "json", timeout=200)
        rows = {one["border"]: one for one in json.loads(done.stdout)}
        assert (rows["network"]["result"], done.returncode) == ("OPEN", 1), rows["network"]
        # A team that may have other images alone lets no such pod in.
        done = plane.run(*CHECK, "--traffic", "other", "-o", "json", timeout=200)
        rows = {one["border"]: one for one in json.loads(done.stdout)}
        assert rows["network"]["result"] == "not tried"
        assert "image other is not allowed" in rows["network"]["why"]
        pods = plane.read("api/v1/pods")["items"]
        going = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
        assert [one for one in going if one["metadata"]["name"].startswith("lockstep-check")] == []
    finally:
        plane.stop()
