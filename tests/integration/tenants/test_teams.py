"""Teams on a real and on the embedded API server: what members may do, and what drifts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.teams import controlled, may, ready
from tests.support.waiting import eventually

from lockstep.api import queue_policy, team_borders, team_images
from lockstep.api.core import NAMESPACES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import TEAM_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import TEAMS
from lockstep.api.training import TRAINING_JOBS
from lockstep.compat import dialects
from lockstep.compat.kubeflow.profile import PROFILES
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds, ensure_foreign
from lockstep.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from lockstep.tenants.core.objects import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NETWORK_POLICIES,
    OWNED,
    ROLE_BINDINGS,
)

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


async def install(client: Client, policy: list[Json]) -> None:
    for obj in policy:
        with suppress(AlreadyExists):
            kind = obj["kind"].lower()
            plural = f"{kind}s" if kind.endswith("binding") else f"{kind[:-1]}ies"
            path = f"{POLICIES}/{plural}"
            await client.request("POST", path, body=json.dumps(obj).encode())


async def refused(work: Callable[[], Awaitable[Any]]) -> str:
    """Return the words by which a request is refused; empty where it is not."""
    try:
        await work()
    except Forbidden as error:
        return str(error)
    return ""


GROUPS = [{"name": "all", "min": 1}]
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "none"}]}}


def using(kind: str, queue: str) -> tuple[Resource[Any], Json]:
    """Return an object of a kind that names a queue; the default one where it is empty."""
    label = {"labels": {"lockstep.dev/queue": queue}} if queue else {}
    named = {"queue": queue} if queue else {}
    roles = [{"name": "worker", "template": TEMPLATE}]
    return {
        "pod": (
            PODS,
            {
                "metadata": {"generateName": "own-", **label},
                "spec": {**TEMPLATE["spec"], "schedulerName": "lockstep"},
            },
        ),
        "gang": (
            GANGS,
            {"metadata": {"generateName": "own-"}, "spec": {"groups": GROUPS, **named}},
        ),
        "job": (
            TRAINING_JOBS,
            {
                "metadata": {"generateName": "own-"},
                "spec": {"framework": "plain", "roles": roles, **named},
            },
        ),
    }[kind]


async def test_queue_is_used_by_its_team_and_those_it_names(
    any_cluster: ApiServer, client: Client
) -> None:
    await install(client, queue_policy.objects())
    async with controlled(any_cluster):
        for name in ("red", "blue"):
            spec = {"queue": {"limit": {"nvidia.com/gpu": 4}}}
            await client.create(TEAMS, {"metadata": {"name": name}, "spec": spec})
            await ready(client, name)

        async def made(kind: str, queue: str, space: str) -> Any:
            resource, body = using(kind, queue)
            return await client.create(resource, body, space)

        for kind in ("pod", "gang", "job"):
            told = await eventually(
                lambda kind=kind: refused(lambda: made(kind, "red", "blue")), what=f"{kind} refused"
            )
            assert "in namespace blue may not use queue red" in told
            assert "spec.queue.allowed of Team red" in told
            assert "update teams.lockstep.dev" in told
            await made(kind, "red", "red")
        moved = await made("gang", "blue", "blue")

        async def move() -> None:
            change = {"spec": {"queue": "red"}}
            await client.patch(GANGS, moved.metadata.name, change, "blue")

        assert "may not use queue red" in await refused(move)
        change = {"spec": {"queue": {"allowed": {"namespaces": ["blue"]}}}}
        await client.patch(TEAMS, "red", change)

        async def let_in() -> bool:
            return not await refused(lambda: made("gang", "red", "blue"))

        await eventually(let_in, what="the other namespace is let in")


async def test_default_queue_of_a_namespace_is_that_of_its_team(
    any_cluster: ApiServer, client: Client
) -> None:
    await install(client, queue_policy.objects())
    await install(client, queue_policy.default_objects())
    async with controlled(any_cluster):
        spec = {"queue": {"limit": {"nvidia.com/gpu": 4}}}
        for name in ("lime", "mint"):
            await client.create(TEAMS, {"metadata": {"name": name}, "spec": spec})
            await ready(client, name)

        async def queue_of(kind: str, queue: str) -> str:
            resource, body = using(kind, queue)
            made = await client.create(resource, body, "lime")
            label = made.metadata.labels.get("lockstep.dev/queue")
            return str(label if kind == "pod" else made.spec.queue)

        async def at_work() -> bool:
            return await queue_of("gang", "") == "lime"

        await eventually(at_work, 60, "the policy is at work")
        for kind in ("pod", "gang", "job"):
            for queue in ("", "default", "lime"):
                assert await queue_of(kind, queue) == "lime", (kind, queue)
        # A pod of another scheduler waits in no queue.
        other = {"metadata": {"generateName": "own-"}, "spec": TEMPLATE["spec"]}
        assert (
            "lockstep.dev/queue" not in (await client.create(PODS, other, "lime")).metadata.labels
        )
        # What is filled in is held to the rule, too: nothing of the team's is for others.
        told = await refused(lambda: client.create(*using("gang", "mint"), "lime"))
        assert "in namespace lime may not use queue mint" in told


async def test_members_cannot_remove_what_isolates_their_team(
    any_cluster: ApiServer, client: Client
) -> None:
    await install(client, team_borders.objects())
    async with controlled(any_cluster):
        member = {"kind": "User", "name": "mallory", "role": "Admin"}
        spec = {"members": [member], "network": "Isolated", "quota": {"pods": 5}}
        await client.create(TEAMS, {"metadata": {"name": "walled"}, "spec": spec})
        await ready(client, "walled")
        own = ("team-walled", "walled")
        opened = {"podSelector": {}, "ingress": [{}], "policyTypes": ["Ingress"]}
        async with Client(replace(client.config, acts_as="mallory")) as mallory:

            async def closed(work: Callable[[], Awaitable[Any]]) -> None:
                told = await eventually(lambda: refused(work), what="it is refused")
                assert "team walled" in told, told

            new = {"metadata": {"generateName": "open-"}, "spec": opened}
            await closed(lambda: mallory.delete(NETWORK_POLICIES, *own))
            await closed(lambda: mallory.create(NETWORK_POLICIES, new, "walled"))
            await closed(
                lambda: mallory.patch(NETWORK_POLICIES, own[0], {"spec": opened}, "walled")
            )
            unlabelled = {"metadata": {"labels": {"lockstep.dev/team": None}}}
            await closed(lambda: mallory.patch(NETWORK_POLICIES, own[0], unlabelled, "walled"))
            await closed(lambda: mallory.delete(ROLE_BINDINGS, "team-walled-admin", "walled"))
            egress = {"podSelector": {}, "policyTypes": ["Egress"]}
            narrow = {"metadata": {"generateName": "narrow-"}, "spec": egress}
            await mallory.create(NETWORK_POLICIES, narrow, "walled")
        assert (await client.get(NETWORK_POLICIES, *own)).metadata.labels
        # An administrator may, and the controller mends it.
        await client.delete(NETWORK_POLICIES, *own)


async def test_pods_have_images_that_their_team_allows(
    any_cluster: ApiServer, client: Client
) -> None:
    await install(client, team_images.objects())

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
    stays = (NAMESPACES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
    unwanted = [res for res in OWNED if res not in stays]
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
