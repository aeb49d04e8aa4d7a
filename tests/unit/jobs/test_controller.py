"""The shell: in which order it writes, and what it makes of the server's answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs
from tests.support.job_world import FakeCluster
from tests.support.jobs import job, mpi_roles

from lockstep.api.core import CONFIG_MAPS, ROLE_BINDINGS, ROLES, SERVICES
from lockstep.api.gang import GANGS
from lockstep.api.resource import Resource
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.jobs.controller import Caches, JobController
from lockstep.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound, ServerFailed
from lockstep.runtime.reconciler import Writer

KEY = ("team", "digits")


@dataclass
class FakeClient:
    """Records what is asked of it; *answer* may raise instead."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    live: dict[tuple[str, str], Any] = field(default_factory=dict)
    config: Any = field(default_factory=lambda: SimpleNamespace(ca=None))
    answer: Callable[[str, str], ApiError | None] = lambda verb, kind: None

    def _take(self, verb: str, res: Resource[Any], name: str, body: Any = None) -> None:
        self.calls.append((verb, res.kind, name))
        self.bodies.append(body)
        if error := self.answer(verb, res.kind):
            raise error

    async def create(self, res: Resource[Any], body: Any, namespace: str) -> None:
        self._take("create", res, body["metadata"]["name"], body)

    async def patch(self, res: Resource[Any], name: str, body: Any, *_: Any, **__: Any) -> Any:
        self._take("patch", res, name, body)
        written = {"metadata": {"name": name, "resourceVersion": "2"}, "spec": {}}
        if res.kind == "TrainingJob":
            written["spec"] = {"framework": "plain", "roles": [{"name": "x", "template": {}}]}
        return convert(written, res.type)

    async def delete(self, res: Resource[Any], name: str, *_: Any, **__: Any) -> None:
        self._take("delete", res, name)

    async def get(self, res: Resource[Any], name: str, namespace: str) -> Any:
        try:
            return self.live[res.kind, name]
        except KeyError:
            raise NotFound(404, "NotFound", name) from None

    def written(self) -> list[tuple[str, str]]:
        return [(verb, kind) for verb, kind, _ in self.calls]


@dataclass
class FakeCache:
    """An informer that is told what to hold."""

    find: Callable[[str, str], Any]
    pods: Callable[[], list[Any]] = list

    def get(self, namespace: str, name: str) -> Any:
        return self.find(namespace, name)

    def by_index(self, index: str, value: str) -> list[Any]:
        return self.pods()


class FakeRecorder:
    """Keeps the reasons of events."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def event(self, obj: Any, type_: str, reason: str, message: str) -> None:
        self.reasons.append(reason)


def shell(world: FakeCluster, client: FakeClient) -> JobController:
    def other(kind: str) -> FakeCache:
        return FakeCache(lambda _, name: world.objects.get((kind, name)))

    caches = Caches(
        cast(Any, FakeCache(lambda _, name: world.job)),
        cast(Any, FakeCache(lambda *_: None, lambda: list(world.pods.values()))),
        cast(Any, FakeCache(lambda *_: None, lambda: _leases(world))),
        cast(Any, FakeCache(lambda *_: None)),
        cast(Any, FakeCache(lambda *_: None)),
        cast(
            Any,
            {res: other(res.kind) for res in (GANGS, SERVICES, CONFIG_MAPS, ROLES, ROLE_BINDINGS)},
        ),
    )
    return JobController(
        Writer(cast(Any, client), cast(Any, FakeRecorder())), caches, clock=lambda: world.now
    )


def _leases(world: FakeCluster) -> list[Any]:
    return [lease for (kind, _), lease in world.objects.items() if kind == "Lease"]


def caught_up(given: TrainingJob, version: str) -> TrainingJob:
    return structs.replace(
        given, metadata=structs.replace(given.metadata, resource_version=version)
    )


async def test_the_status_is_written_first_and_against_its_version() -> None:
    world, client = FakeCluster(job()), FakeClient()
    await shell(world, client).reconcile(KEY)
    assert client.written() == [
        ("patch", "TrainingJob"),
        ("create", "Service"),
        ("create", "Role"),
        ("create", "RoleBinding"),
        ("create", "Lease"),
        ("create", "Lease"),
        ("create", "Secret"),
        ("create", "ConfigMap"),
        ("create", "Gang"),
        ("create", "Pod"),
        ("create", "Pod"),
    ]
    assert client.bodies[0]["metadata"] == {"resourceVersion": "1"}


async def test_nothing_follows_a_status_that_was_not_written() -> None:
    def answer(verb: str, kind: str) -> ApiError | None:
        return Conflict(409, "Conflict", "it has changed") if kind == "TrainingJob" else None

    client = FakeClient(answer=answer)
    with pytest.raises(Conflict):  # the runtime looks again
        await shell(FakeCluster(job()), client).reconcile(KEY)
    assert client.written() == [("patch", "TrainingJob")]


async def test_nothing_is_decided_on_a_job_older_than_the_write() -> None:
    world, client = FakeCluster(job()), FakeClient()
    controller = shell(world, client)
    await controller.reconcile(KEY)
    written = len(client.calls)
    assert await controller.reconcile(KEY) is not None
    assert len(client.calls) == written
    world.job = caught_up(job(), "2")
    await controller.reconcile(KEY)
    assert len(client.calls) > written


async def test_a_pod_that_only_the_cache_misses_is_not_lost() -> None:
    world = FakeCluster(job(launcher="None"))
    world.run()
    client = FakeClient(live={("Pod", "digits-worker-1"): world.pods.pop("digits-worker-1")})
    assert await shell(world, client).reconcile(KEY) is not None
    assert client.calls == []
    client.live.clear()
    await shell(world, client).reconcile(KEY)
    assert client.written() == [("patch", "TrainingJob"), ("delete", "Pod")]


async def test_the_server_says_why_a_pod_missing_from_cache_went() -> None:
    world = FakeCluster(job(launcher="None"))
    world.run()
    unaware = world.objects["Gang", "digits"]
    world.preempt("digits-worker-1")
    client = FakeClient(live={("Gang", "digits"): world.objects["Gang", "digits"]})
    world.objects["Gang", "digits"] = unaware
    assert await shell(world, client).reconcile(KEY) is not None
    assert client.calls == []
    world.objects["Gang", "digits"] = client.live["Gang", "digits"]
    await shell(world, client).reconcile(KEY)
    assert "restarts" not in client.bodies[0]["status"]
    assert client.bodies[0]["status"]["attempt"] == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Invalid(422, "Invalid", "spec.x: Invalid value"), "Gang digits was refused: spec.x"),
        (NotFound(404, "NotFound", "no such namespace"), "Gang digits was refused: no such"),
    ],
)
async def test_what_the_server_refuses_is_in_the_next_status(error: ApiError, said: str) -> None:
    world = FakeCluster(job())
    client = FakeClient(answer=lambda verb, kind: error if kind == "Gang" else None)
    controller = shell(world, client)
    assert await controller.reconcile(KEY) == 0
    assert ("create", "Pod") not in client.written(), "no pods without their gang"
    world.job = caught_up(job(), "2")
    client.calls.clear()
    client.bodies.clear()
    await controller.reconcile(KEY)
    assert client.bodies[0]["status"]["message"].startswith(said)


async def test_a_server_that_fails_is_asked_again() -> None:
    error = ServerFailed(500, "InternalError", "boom")
    client = FakeClient(answer=lambda verb, kind: error if kind == "Service" else None)
    with pytest.raises(ServerFailed):
        await shell(FakeCluster(job()), client).reconcile(KEY)


@pytest.mark.parametrize("ours", [True, False])
async def test_an_existing_object_matters_only_when_it_is_not_ours(ours: bool) -> None:
    world = FakeCluster(job())
    world.settle()
    service = world.objects.pop(("Service", "digits"))
    if not ours:
        meta = structs.replace(service.metadata, owner_references=[])
        service = structs.replace(service, metadata=meta)
    taken = AlreadyExists(409, "AlreadyExists", "it is there")
    client = FakeClient(
        live={("Service", "digits"): service},
        answer=lambda verb, kind: taken if (verb, kind) == ("create", "Service") else None,
    )
    again = await shell(world, client).reconcile(KEY)
    assert (again == 0) is not ours


async def test_keys_are_made_for_the_secret_alone() -> None:
    world, client = FakeCluster(job(*mpi_roles(), framework="mpi")), FakeClient()
    await shell(world, client).reconcile(KEY)
    bodies = dict(zip(client.calls, client.bodies, strict=True))
    secret = bodies.pop(("create", "Secret", "digits-ssh"))
    assert "PRIVATE KEY" in secret["stringData"]["id_ed25519"]
    assert "PRIVATE KEY" not in str(bodies)


async def test_keys_that_are_there_are_kept() -> None:
    world = FakeCluster(job(*mpi_roles(), framework="mpi"))
    world.settle()
    client = FakeClient(live={("Secret", "digits-ssh"): world.objects["Secret", "digits-ssh"]})
    await shell(world, client).reconcile(KEY)
    assert "Secret" not in {kind for _, kind in client.written()}


async def test_a_job_that_is_gone_is_forgotten() -> None:
    world, client = FakeCluster(None), FakeClient()
    assert await shell(world, client).reconcile(KEY) is None
    assert client.calls == []
