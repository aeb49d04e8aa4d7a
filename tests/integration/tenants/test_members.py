"""What members of a team read of their own, and that no word of another team is in any answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.console import Console, Visitor, token
from tests.support.costs import HOUR, claim
from tests.support.teams import command, controlled, kubeconfig_of, ready
from tests.support.waiting import eventually, eventually_sync

from lockstep.api.core import CLAIMS, CONFIG_MAPS, NAMESPACES, SECRETS
from lockstep.api.gang import GANGS
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.packing import unpack
from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.api.price_list import PRICE_LISTS
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import TEAMS
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.usage_query import USAGE_QUERIES
from lockstep.insight.history.records import NodeSpan
from lockstep.insight.history.store import Store
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound

Json = dict[str, Any]
CANARY = "canary"
"""Stands in every name of the other team."""
QUEUE: Json = {"parent": "institute", "limit": {"nvidia.com/gpu": 4}}
RED: Json = {
    "members": [
        {"name": "ana", "role": "Admin"},
        {"name": "ben"},
        {"name": "cleo", "role": "View"},
        {"name": "gone", "role": "Admin"},
        {"name": "red/robot", "kind": "ServiceAccount", "role": "View"},
    ],
    "namespaces": ["red", "red-prod"],
    "queue": QUEUE,
    "budget": {"month": 1},
}
OTHER: Json = {"members": [{"name": "mallory-canary", "role": "Admin"}], "queue": QUEUE}
PRICES: Json = {
    "currency": "EUR",
    "prices": [{"gpuHour": 2}, {"gpuHour": 9, "selector": {"lab": "canary-nodes"}}],
    "budgets": [{"namespace": "canary", "month": 1}, {"user": "mallory-canary", "month": 1}],
}


@dataclass
class Place:
    """A server with two teams, of which the other's names have the canary in them."""

    server: ApiServer
    client: Client
    folder: Path

    async def told(self, user: str, *arguments: str) -> str:
        status, words = await self.tried(user, *arguments)
        assert status == 0, words
        return words

    async def tried(self, user: str, *arguments: str) -> tuple[int, str]:
        config = kubeconfig_of(self.server, user, "red", self.folder)
        return await command(config, *arguments)


def record(path: Path) -> None:
    """Put on record what both teams hold at this time."""
    now = time.time()
    store = Store(path)
    store.put(
        [
            claim("a", 0, now - HOUR, None, namespace="red", queue="red", user="ben", job="digits"),
            claim("b", 1, now - HOUR, None, namespace="red-prod", queue="red", user="cleo"),
            *(
                claim(f"canary-{number}", number, now - HOUR, None, share=0.5, **OF_THE_OTHER)
                for number in (1, 2)
            ),
        ],
        [
            NodeSpan("nu", "n", 2, now - HOUR),
            NodeSpan("mu", "canary-n", 4, now - HOUR, labels={"lab": "canary-nodes"}),
        ],
    )
    store.close()


OF_THE_OTHER = {
    "namespace": "canary",
    "queue": "canary",
    "user": "mallory-canary",
    "node": "canary-n",
}


@asynccontextmanager
async def two_teams(server: ApiServer, folder: Path) -> AsyncIterator[Place]:
    record(folder / "usage.db")
    async with server.client() as client:
        await ensure_crds(client)
        async with controlled(server, folder / "usage.db"):
            with suppress(AlreadyExists):
                await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
            for name in ("institute", "reserve-canary"):
                await client.create(QUEUES, {"metadata": {"name": name}})
            for name, spec in (("red", RED), ("canary", OTHER)):
                await client.create(TEAMS, {"metadata": {"name": name}, "spec": spec})
                await ready(client, name)
            await client.create(
                PRICE_LISTS, {"metadata": {"name": "canary-prices"}, "spec": PRICES}
            )
            for space in ("red", "canary"):
                gang = {"groups": [{"name": "all", "min": 1}], "queue": space}
                await client.create(
                    GANGS, {"metadata": {"name": f"{space}-waits"}, "spec": gang}, space
                )
            yield Place(server, client, folder)
            await _leave(client)


async def _leave(client: Client) -> None:
    """Take the teams away with their namespaces: another test on this server has the same."""
    spaces = ("red", "red-prod", "canary")
    for resource, names in ((TEAMS, ("red", "canary")), (NAMESPACES, spaces)):
        for name in names:
            with suppress(NotFound):
                await client.delete(resource, name)

    async def gone() -> bool:
        there = {one.metadata.name for one in (await client.list(NAMESPACES)).items}
        return not there.intersection(spaces)

    await eventually(gone, 60, "the namespaces are gone")


@pytest.fixture(params=["server", "real_cluster"], ids=["embedded", "kube-apiserver"])
def any_cluster(request: pytest.FixtureRequest) -> ApiServer:
    """Each server in turn; the real one with the controller that aggregates roles."""
    server: ApiServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
async def place(any_cluster: ApiServer, tmp_path: Path) -> AsyncIterator[Place]:
    async with two_teams(any_cluster, tmp_path) as found:
        yield found


READ = [
    (("queue", "list"), ("red", "institute")),
    (("queue", "list", "-o", "yaml"), ("red", "institute")),
    (("queue", "explain", "red"), ("part of institute", "red/red-waits")),
    (("describe", "queue/red"), ("red-waits",)),
    (("top", "queues"), ("red",)),
    (("team", "list"), ("red",)),
    (("get", "team/red", "-o", "json"), ("cleo",)),
    (("list", "gangs"), ("red-waits",)),
    (("cost", "--by", "queue,month,purpose"), ("red", "EUR", "budget of team red")),
    (("cost", "--by", "user", "-o", "csv"), ("ben", "cleo")),
    (("cost", "-n", "red", "-o", "allocation"), ("digits",)),
]


async def test_members_read_their_own_and_no_word_of_others(place: Place) -> None:
    # The commands are the same on both servers; what the servers answer them is what differs.
    for arguments, words in READ if type(place.server) is ApiServer else READ[:3] + READ[-3:]:
        told = await place.told("cleo", *arguments)
        assert all(word in told for word in words), (arguments, told)
        assert CANARY not in told, (arguments, told)
    mine, whole = [
        json.JSONDecoder().raw_decode(
            await place.told(user, "cost", "--by", "namespace", "-o", "json")
        )[0]
        for user in ("ben", "")
    ]
    lines = [line for line in whole["lines"] if line["namespace"].startswith("red")]
    assert [(one["namespace"], one["cost"]) for one in mine["lines"]] == [
        (one["namespace"], pytest.approx(one["cost"], rel=0.05)) for one in lines
    ]
    assert mine["total"]["cost"] == pytest.approx(4, rel=0.05)


CONTENT = (
    *("mallory", "canary-waits", "canary-n", "canary-prices", "reserve-canary", "canary-key"),
    *("canary-artefact", "canary-model", "canary-checkpoint", "canary-claim", "canary-bill"),
)
"""What stands in the other team's objects, and in no request of the matrix."""
LOCKSTEP = "apis/lockstep.dev/v1alpha1"
KINDS = {
    "trainingjobs": LOCKSTEP,
    "gangs": LOCKSTEP,
    "environments": LOCKSTEP,
    "kernels": LOCKSTEP,
    "pipelineruns": LOCKSTEP,
    "pipelinetriggers": LOCKSTEP,
    "modelversions": LOCKSTEP,
    "datasetcaches": LOCKSTEP,
    "routes": LOCKSTEP,
    "usagequeries": LOCKSTEP,
    "notebooks": "apis/kubeflow.org/v1",
    "inferenceservices": "apis/serving.kserve.io/v1beta1",
    "datasets": "apis/data.fluid.io/v1alpha1",
    "dataloads": "apis/data.fluid.io/v1alpha1",
    "workflows": "apis/argoproj.io/v1alpha1",
    "tensorboards": "apis/tensorboard.kubeflow.org/v1alpha1",
    "persistentvolumeclaims": "api/v1",
    "pods": "api/v1",
    "pods/guess/log": "api/v1",
    "pods/-/log?job=guess": "api/v1",
    "pods/guess/log?node=n&uid=guess&container=main": "api/v1",
    "pods/guess/attach": "api/v1",
    "pods/guess/proxy/metrics": "api/v1",
    "pods/guess/exec": "api/v1",
    "pods/guess/portforward": "api/v1",
    "services/guess/proxy": "api/v1",
    "secrets": "api/v1",
    "configmaps": "api/v1",
    "events": "api/v1",
    "serviceaccounts/default/token": "api/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "rolebindings": "apis/rbac.authorization.k8s.io/v1",
}
OF_ALL = ("queues", "teams", "pricelists", "deviceusages", "nodehealths", "nodepools", "topologies")
VERBS = (
    ("GET", ""),
    ("GET", "?watch=true"),
    ("GET", "/guess"),
    ("POST", "?dryRun=All"),
    ("PATCH", "/guess?dryRun=All"),
    ("DELETE", "/guess?dryRun=All"),
    ("DELETE", "?dryRun=All"),
)
USERS = ("stranger", "cleo", "ben", "ana", "gone")


async def answered(client: Client, method: str, path: str) -> tuple[int, str]:
    """Send a request; return its status and every word of the answer."""
    where, _, query = path.partition("?")
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    try:
        body = await client.request(
            method,
            where,
            params=dict(pair.split("=") for pair in query.split("&") if pair),
            body=b"{}" if method in ("POST", "PATCH") else None,
            content_type=kind,
        )
    except ApiError as error:
        return error.status, str(error)
    return 200, body.decode()


def others_paths() -> Iterator[tuple[str, str]]:
    """Yield each kind and verb: of the other team, of all namespaces, and of the cluster."""
    for plural, group in KINDS.items():
        verbs = VERBS if "/" not in plural else (("GET", ""), ("POST", ""))
        for method, suffix in verbs:
            yield method, f"/{group}/namespaces/canary/{plural}{suffix}"
        if "/" not in plural:
            yield "GET", f"/{group}/{plural}"
    for plural in OF_ALL:
        for method, suffix in VERBS:
            yield method, f"/{LOCKSTEP}/{plural}{suffix}"
    for name in ("queues/canary", "teams/canary", "queues/reserve"):
        yield "GET", f"/{LOCKSTEP}/{name}"
    yield "POST", f"/{LOCKSTEP}/namespaces/{SYSTEM_NAMESPACE}/usagequeries"


async def put_data(client: Client) -> None:
    """Let the other team have a secret, an artefact, a model, a checkpoint, files, and a bill."""
    suspended = {"desired": "Suspended", "templates": {"main": {"suspend": {}}}}
    model = {"model": "canary-model", "version": "1", "uri": "s3://canary-artefact/model"}
    files = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    bodies: list[tuple[Resource[Any], str, Json]] = [
        (SECRETS, "canary-key", {"stringData": {"a": "b"}}),
        (PIPELINE_RUNS, "canary-artefact", {"spec": suspended}),
        (MODEL_VERSIONS, "canary-model", {"spec": model}),
        (CONFIG_MAPS, "canary-checkpoint", {"data": {"at": "s3://canary-checkpoint/7"}}),
        (CLAIMS, "canary-claim", {"spec": files}),
        (USAGE_QUERIES, "canary-bill", {"spec": {"by": ["namespace"]}}),
    ]
    for resource, name, body in bodies:
        await client.create(resource, {"metadata": {"name": name}, **body}, "canary")


async def test_no_member_reaches_another_team_by_any_kind_and_verb(place: Place) -> None:
    await put_data(place.client)
    members = [one for one in RED["members"] if one["name"] != "gone"]
    await place.client.patch(TEAMS, "red", {"spec": {"members": members}})
    own = f"/{LOCKSTEP}/namespaces/red/gangs"
    for user in USERS:
        async with Client(replace(place.client.config, acts_as=user)) as client:
            reads, writes = user in ("cleo", "ben", "ana"), user in ("ben", "ana")

            async def rights(client: Client = client) -> tuple[bool, bool]:
                allowed = [await answered(client, "GET", own)]
                allowed.append(await answered(client, "DELETE", f"{own}/red-waits?dryRun=All"))
                return tuple(status == 200 for status, _ in allowed)  # type: ignore[return-value]

            # A removed member is out within 10 s, and each other one has the rights of the role.
            wanted = (reads, writes)
            await eventually(
                lambda rights=rights, wanted=wanted: _is(rights, wanted), 10, f"rights of {user}"
            )
            for method, path in others_paths():
                status, words = await answered(client, method, path)
                assert status == 403, (user, method, path, status, words)
                assert not any(word in words for word in CONTENT), (user, method, path, words)


async def test_namespace_made_again_tells_nothing_of_the_one_before(place: Place) -> None:
    spent = ("cost", "--by", "user,job", "-o", "json", "-n", "canary")
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"framework": "plain", "roles": [{"name": "w", "template": template}]}
    job = {"metadata": {"name": "canary-job"}, "spec": spec}
    await place.client.create(TRAINING_JOBS, job, "canary")
    asked = {"metadata": {"generateName": "q-"}, "spec": {"by": ["job"], "shape": "Jobs"}}

    async def jobs() -> str:
        made = await place.client.create(USAGE_QUERIES, asked, "canary")

        async def state() -> str:
            found = await place.client.get(USAGE_QUERIES, made.metadata.name, "canary")
            return found.status.records if found.status.state else ""

        return json.dumps(unpack(await eventually(state, 60, "it is answered"), list[Any]))

    async def on_record() -> bool:
        return "canary-job" in await jobs()

    await eventually(on_record, 60, "the job is on record")
    assert "mallory-canary" in await place.told("mallory-canary", *spent)
    await place.client.delete(TEAMS, "canary")
    await place.client.delete(NAMESPACES, "canary")
    members = [{"name": "nina", "role": "Admin"}]
    next_team = {"metadata": {"name": "canary"}, "spec": {"members": members}}

    async def again() -> bool:
        with suppress(ApiError):
            await place.client.create(TEAMS, next_team)
            return True
        return False

    await eventually(again, 60, "the team's name is free")
    await ready(place.client, "canary")

    async def told() -> str:
        status, words = await place.tried("nina", *spent)
        return words if status == 0 else ""

    words = await eventually(told, 60, "the new member asks")
    assert "mallory" not in words
    assert json.JSONDecoder().raw_decode(words)[0]["total"]["cost"] == 0
    assert "canary-job" not in await jobs()


async def _is(probe: Callable[[], Awaitable[Any]], wanted: Any) -> bool:
    return bool(await probe() == wanted)


@pytest.mark.parametrize("any_cluster", ["server"], indirect=True, ids=["embedded"])
@pytest.mark.parametrize("records", ["usage.db", ""], ids=["file", "recorder"])
async def test_console_shows_members_what_is_their_teams(place: Place, records: str) -> None:
    account = {"metadata": {"name": "robot"}}
    path = "/api/v1/namespaces/red/serviceaccounts"
    await place.client.request("POST", path, body=json.dumps(account).encode())
    options = ("--records", str(place.folder / records)) if records else ()

    def look() -> None:
        console = Console(place.server, place.folder / "console", *options)
        try:
            visitor = console.visitor(token=token(place.server, "red", "robot"))
            admin = console.visitor(code=console.code())

            def told(path: str, who: Visitor = visitor) -> str:
                answer = who.request("GET", path)
                assert answer.status == 200, (path, answer.body)
                return answer.body.decode()

            eventually_sync(lambda: "red" in told("/api/lists/teams"), what="the cache is read")
            shown = {path: told(path) for path in SHOWN}
            assert all(CANARY not in words for words in shown.values()), shown
            assert "institute" in shown["/api/queues"]
            assert "institute" in shown["/api/csv/queues"]
            mine = json.loads(shown["/api/cost?by=namespace"])
            whole = json.loads(told("/api/cost?by=namespace", admin))
            lines = [one for one in whole["lines"] if one["key"][0].startswith("red")]
            cost = sum(one["cost"] for one in lines)
            assert mine["total"]["cost"] == pytest.approx(cost, abs=0.05)
            assert len(mine["lines"]) == len(lines) == 2
            assert mine["free"] is None
        finally:
            console.stop()

    await asyncio.to_thread(look)


SHOWN = (
    "/api/queues",
    "/api/csv/queues",
    "/api/lists/teams",
    "/api/csv/teams",
    "/api/cost?by=namespace",
    "/api/cost?by=queue",
    "/api/cost?by=user",
    "/api/cost?by=purpose",
)
