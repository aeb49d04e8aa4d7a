"""Teams on a real and on the embedded API server: what members may do, and what drifts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

from lockstep.api import team_images
from lockstep.api.core import NAMESPACES, PODS
from lockstep.api.names import TEAM_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.team import TEAMS, Team
from lockstep.compat import dialects
from lockstep.compat.kubeflow.profile import PROFILES
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds, ensure_foreign
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.kube.manager import Manager
from lockstep.notebooks.installed import Installed
from lockstep.tenants.core.objects import OWNED, ROLE_BINDINGS
from lockstep.tenants.main import add_profiles, add_teams

Json = dict[str, Any]
SPEC: Json = {
    "members": [
        {"name": "ana", "role": "Admin"},
        {"name": "ben"},
        {"name": "cleo", "role": "View"},
    ],
    "queue": {"guaranteed": {"nvidia.com/gpu": 8}},
    "quota": {"requests.cpu": "0.5"},
    "containerDefaults": {"cpu": 1},
    "network": "Isolated",
}
# user, verb, resource, namespace -> allowed
RIGHTS = [
    ("ana", "create", "rbac.authorization.k8s.io/rolebindings", "red", True),
    ("ana", "create", "lockstep.dev/trainingjobs", "red", True),
    ("ben", "create", "lockstep.dev/trainingjobs", "red", True),
    ("ben", "create", "rbac.authorization.k8s.io/rolebindings", "red", False),
    ("ben", "get", "/secrets", "red", True),
    ("cleo", "list", "/pods", "red", True),
    ("cleo", "get", "/secrets", "red", False),
    ("cleo", "delete", "lockstep.dev/trainingjobs", "red", False),
    ("dora", "list", "/pods", "red", False),
    ("dora", "list", "/pods", "blue", True),
    ("ana", "list", "/pods", "blue", False),
    ("ana", "create", "lockstep.dev/queues", "", False),
    ("ana", "create", "lockstep.dev/teams", "", False),
]


@asynccontextmanager
async def controlled(server: ApiServer) -> AsyncIterator[None]:
    """Run the controller of teams with the rights that it is given."""
    config = ClusterConfig.load(server.data / "kubeconfigs" / "controllers.kubeconfig")
    async with Client(config) as client:
        manager = Manager(client, name="controllers", leader_elect=False)
        add_teams(manager)
        add_profiles(manager, Installed(client, PROFILES).ours)
        running = asyncio.create_task(manager.run(lambda _: None))
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def ready(client: Client, name: str) -> Team:
    async def look() -> Team | None:
        team = await client.get(TEAMS, name)
        if any(c.observed_generation != team.metadata.generation for c in team.status.conditions):
            return None
        return (
            team
            if any(c.type == "Ready" and c.status == "True" for c in team.status.conditions)
            else None
        )

    return await eventually(look, what=f"team {name} is ready")


async def may(client: Client, user: str, verb: str, what: str, namespace: str) -> bool:
    group, _, resource = what.rpartition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    body = {"spec": {"user": user, "resourceAttributes": asked}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = await client.request("POST", path, body=json.dumps(body).encode())
    return bool(json.loads(answer)["status"]["allowed"])


@pytest.fixture(params=["server", "real_cluster"], ids=["embedded", "kube-apiserver"])
def any_cluster(request: pytest.FixtureRequest) -> ApiServer:
    """Each server in turn; the real one with the controller that aggregates roles."""
    server: ApiServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
async def client(any_cluster: ApiServer) -> AsyncIterator[Client]:
    async with any_cluster.client() as client:
        await ensure_crds(client)
        yield client


async def test_members_have_the_rights_of_their_team_alone(
    any_cluster: ApiServer, client: Client
) -> None:
    async with controlled(any_cluster):
        await client.create(TEAMS, {"metadata": {"name": "red"}, "spec": SPEC})
        await client.create(
            TEAMS, {"metadata": {"name": "blue"}, "spec": {"members": [{"name": "dora"}]}}
        )
        await ready(client, "red")
        await ready(client, "blue")

        async def right() -> bool:
            found = [await may(client, *case[:4]) for case in RIGHTS]
            assert found == [case[4] for case in RIGHTS]
            return True

        await eventually(_tolerant(right), what="every right is as it should be")
        queue = await client.get(QUEUES, "red")
        assert queue.spec.guaranteed == {"nvidia.com/gpu": 8}


async def test_drift_is_mended_and_a_settled_team_is_not_written(
    any_cluster: ApiServer, client: Client
) -> None:
    async with controlled(any_cluster):
        await client.create(TEAMS, {"metadata": {"name": "green"}, "spec": SPEC})
        await ready(client, "green")
        binding = await client.get(ROLE_BINDINGS, "team-green-edit", "green")
        await client.delete(ROLE_BINDINGS, "team-green-edit", "green")

        async def back() -> bool:
            with suppress(NotFound):
                again = await client.get(ROLE_BINDINGS, "team-green-edit", "green")
                return again.metadata.uid != binding.metadata.uid
            return False

        await eventually(back, what="the role binding is back")
        less = {"queue": None, "quota": None, "network": "Open", "containerDefaults": None}
        await client.patch(TEAMS, "green", {"spec": {**less, "members": SPEC["members"][:2]}})
        await ready(client, "green")
        await eventually(lambda: _is_gone(client, "green"), what="what is not wanted is gone")
        before = await _versions(client)
    async with controlled(any_cluster):
        await ready(client, "green")
        await client.patch(TEAMS, "green", {"metadata": {"annotations": {"seen": "1"}}})
        await client.create(TEAMS, {"metadata": {"name": "later"}, "spec": {}})
        await ready(client, "later")
        assert await _versions(client) == before


async def test_a_profile_of_kubeflow_is_a_team(any_cluster: ApiServer, client: Client) -> None:
    await ensure_foreign(client, dialects.manifests(["kubeflow"]))
    hard = {"pods": "5"}
    spec = {"owner": {"kind": "User", "name": "ana"}, "resourceQuotaSpec": {"hard": hard}}

    async def created() -> bool:
        with suppress(NotFound):
            await client.create(PROFILES, {"metadata": {"name": "sight"}, "spec": spec})
            return True
        return False

    async with controlled(any_cluster):
        await eventually(created, what="the kind is served")

        async def is_the_team(pods: str) -> bool:
            with suppress(NotFound):
                team = await ready(client, "sight")
                return team.spec.quota == {"pods": pods} and team.spec.members[0].role == "Admin"
            return False

        await eventually(lambda: is_the_team("5"), what="the team")
        hard["pods"] = "6"
        await client.patch(PROFILES, "sight", {"spec": spec})
        await eventually(lambda: is_the_team("6"), what="the team follows")

        async def told() -> bool:
            profile = await client.get(PROFILES, "sight")
            return [c["type"] for c in profile.status.get("conditions", [])] == ["Successful"]

        await eventually(told, what="the profile says so")


POLICIES = "/apis/admissionregistration.k8s.io/v1"
REFUSED = [
    ({"containers": [{"image": "pythonic"}]}, "pythonic"),
    ({"containers": [{"image": "python"}], "initContainers": [{"image": "evil:1"}]}, "evil:1"),
]


async def test_pods_have_images_that_their_team_allows(
    any_cluster: ApiServer, client: Client
) -> None:
    for plural, obj in zip(
        ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        team_images.objects(),
        strict=True,
    ):
        with suppress(AlreadyExists):
            path = f"{POLICIES}/{plural}"
            await client.request("POST", path, body=json.dumps(obj).encode())

    async def create(name: str, spec: Json, space: str) -> None:
        parts = {
            part: [{"name": f"{part.lower()}-{k}", **one} for k, one in enumerate(containers)]
            for part, containers in spec.items()
        }
        await client.create(PODS, {"metadata": {"name": name}, "spec": parts}, space)

    async def refusal(spec: Json) -> str:
        try:
            await create("wrong", spec, "strict")
        except ApiError as error:
            return str(error)
        # A policy takes a moment to be in force.
        await client.delete(PODS, "wrong", "strict", grace_seconds=0)
        return ""

    async with controlled(any_cluster):
        spec = {"images": ["registry/vision/*", "python"]}
        await client.create(TEAMS, {"metadata": {"name": "strict"}, "spec": spec})
        await client.create(TEAMS, {"metadata": {"name": "lax"}, "spec": {}})
        for name in ("strict", "lax"):
            await ready(client, name)
        for pod, image in REFUSED:
            told = await eventually(lambda pod=pod: refusal(pod), what="it is refused")
            assert image in told
            assert "team strict allows: registry/vision/*, python" in told
            assert "spec.images" in told
        allowed = [{"image": "python:3.12"}, {"image": "registry/vision/train@sha256:1"}]
        await create("right", {"containers": allowed}, "strict")
        await create("any", {"containers": [{"image": "evil:1"}]}, "lax")
        for name, space in (("right", "strict"), ("any", "lax")):
            await client.delete(PODS, name, space, grace_seconds=0)


async def test_a_namespace_of_others_is_left_alone(any_cluster: ApiServer, client: Client) -> None:
    async with controlled(any_cluster):
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": "theirs"}})
        await client.create(TEAMS, {"metadata": {"name": "theirs"}, "spec": SPEC})

        async def refused() -> bool:
            team = await client.get(TEAMS, "theirs")
            return any(
                c.status == "False" and "kubectl label --overwrite namespaces theirs" in c.message
                for c in team.status.conditions
            )

        await eventually(refused, what="the team says what stands in its way")
        with pytest.raises(NotFound):
            await client.get(ROLE_BINDINGS, "team-theirs-edit", "theirs")


async def _is_gone(client: Client, name: str) -> bool:
    label = f"{TEAM_LABEL}={name}"
    unwanted = [res for res in OWNED if res not in (NAMESPACES, ROLE_BINDINGS)]
    left = [(await client.list(res, label_selector=label)).items for res in unwanted]
    return not any(left)


async def _versions(client: Client) -> Json:
    bindings = (await client.list(ROLE_BINDINGS, "green")).items
    return {b.metadata.name: b.metadata.resource_version for b in bindings}


def _tolerant(check: Callable[[], Awaitable[bool]]) -> Callable[[], Awaitable[bool]]:
    """Turn a failed assertion into "not yet": roles reach the authorizer a moment later."""

    async def look() -> bool:
        try:
            return await check()
        except AssertionError:
            return False

    return look
