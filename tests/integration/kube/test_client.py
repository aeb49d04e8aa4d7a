"""The client against a server that fails on command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.fake_server import FakeServer, Fault

from lockstep.api.core import CONFIG_MAPS, NODES, PODS
from lockstep.kube.client import Patch
from lockstep.kube.errors import (
    Gone,
    NotFound,
    NotLeading,
    ServerFailed,
    TooManyRequests,
    Unreachable,
)


async def test_a_list_is_read_in_pages(fake: FakeServer) -> None:
    for n in range(7):
        fake.put(f"c{n}", "x")
    async with fake.client() as client:
        listing = await client.list(CONFIG_MAPS, limit=3)
    assert [one.metadata.name for one in listing.items] == [f"c{n}" for n in range(7)]
    assert listing.resource_version == str(fake.history.version)
    assert [seen.query.get("continue") for seen in fake.seen] == [None, "3", "6"]


async def test_a_list_whose_snapshot_is_lost_is_read_as_one(fake: FakeServer) -> None:
    for n in range(4):
        fake.put(f"c{n}", "x")
    fake.faults.extend([None, Fault("status", status=410, reason="Expired")])
    async with fake.client() as client:
        listing = await client.list(CONFIG_MAPS, limit=3)
    assert len(listing.items) == 4
    assert "limit" not in fake.seen[-1].query


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", status=500),
        Fault("status", status=503),
        Fault("status", status=429),
        Fault("drop"),
    ],
    ids=str,
)
async def test_what_can_be_repeated_is_tried_again(fake: FakeServer, fault: Fault) -> None:
    fake.faults.extend([fault, fault])
    async with fake.client() as client:
        found = await client.get(CONFIG_MAPS, "x")
        await client.patch(CONFIG_MAPS, "x", {"data": {"a": "b"}})
    assert found.metadata.name == "x"
    assert [seen.method for seen in fake.seen] == ["GET", "GET", "GET", "PATCH"]


@pytest.mark.parametrize(
    ("fault", "sent", "error"),
    [
        (Fault("status", status=500), 1, ServerFailed),
        (Fault("drop"), 1, Unreachable),
        (Fault("status", status=429), 2, None),
    ],
    ids=["500", "dropped", "429"],
)
async def test_a_creation_is_repeated_only_if_the_server_did_nothing(
    fake: FakeServer, fault: Fault, sent: int, error: type[Exception] | None
) -> None:
    fake.faults.append(fault)
    body = {"metadata": {"name": "x"}}
    async with fake.client() as client:
        # A pooled connection that the server closes meanwhile must not look like a refusal.
        if error is None:
            await client.create(NODES, body)
        else:
            with pytest.raises(error):
                await client.create(NODES, body)
    assert len(fake.seen) == sent


async def test_it_waits_as_long_as_the_server_says(fake: FakeServer) -> None:
    fake.faults.append(Fault("status", status=429, headers={"Retry-After": "1"}))
    async with fake.client() as client:
        await client.get(CONFIG_MAPS, "x")
    first, second = fake.seen
    assert second.at - first.at >= 1.0


async def test_a_disruption_budget_is_the_callers_matter(fake: FakeServer) -> None:
    cause = {"reason": "DisruptionBudget"}
    fake.faults.append(Fault("status", status=429, causes=(cause,)))
    async with fake.client() as client:
        with pytest.raises(TooManyRequests):
            await client.evict("s", "p")
    assert len(fake.seen) == 1


async def test_every_call_has_a_deadline(fake: FakeServer) -> None:
    fake.faults.extend([Fault("status", status=503)] * 50)
    async with fake.client(deadline=0.5) as client:
        with pytest.raises((ServerFailed, Unreachable)):
            await client.get(CONFIG_MAPS, "x")
    assert len(fake.seen) < 50


async def test_a_server_that_is_not_there_is_named() -> None:
    fake = await FakeServer().start()
    await fake.close()
    async with fake.client(deadline=1.0) as client:
        with pytest.raises(Unreachable) as caught:
            await client.create(NODES, {"metadata": {"name": "x"}})
    assert not caught.value.acted
    assert fake.url in str(caught.value)
    assert "refused" in str(caught.value)


async def test_errors_say_what_the_server_said(fake: FakeServer) -> None:
    fake.faults.append(Fault("status", status=404, reason="NotFound"))
    async with fake.client() as client:
        with pytest.raises(NotFound, match="made to fail with 404"):
            await client.get(CONFIG_MAPS, "x")


async def call_get(client: Any) -> None:
    await client.get(PODS, "p", "s")


async def call_default_namespace(client: Any) -> None:
    await client.get(PODS, "p")


async def call_create(client: Any) -> None:
    await client.create(PODS, {"metadata": {"name": "p", "namespace": "s"}}, dry_run=True)


async def call_replace(client: Any) -> None:
    body = {"metadata": {"name": "p", "namespace": "s"}}
    await client.replace(PODS, body, subresource="status")


async def call_apply(client: Any) -> None:
    await client.patch(PODS, "p", {"metadata": {"name": "p"}}, "s", how=Patch.APPLY, force=True)


async def call_json_patch(client: Any) -> None:
    await client.patch(PODS, "p", [{"op": "remove", "path": "/x"}], "s", how=Patch.JSON)


async def call_delete(client: Any) -> None:
    await client.delete(PODS, "p", "s", grace_seconds=0, propagation="Foreground", uid="u")


async def call_bind(client: Any) -> None:
    await client.bind("s", "p", "n", uid="u", annotations={"a": "b"})


async def call_evict(client: Any) -> None:
    await client.evict("s", "p", grace_seconds=3)


POD = "/api/v1/namespaces/s/pods/p"
IDENTITY = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("call", "line", "query", "body"),
    [
        (call_get, f"GET {POD}", {}, None),
        (call_default_namespace, "GET /api/v1/namespaces/default/pods/p", {}, None),
        (
            call_create,
            "POST /api/v1/namespaces/s/pods",
            {"fieldManager": "lockstep", "dryRun": "All"},
            {**IDENTITY, "metadata": {"name": "p", "namespace": "s"}},
        ),
        (
            call_replace,
            f"PUT {POD}/status",
            {"fieldManager": "lockstep"},
            {**IDENTITY, "metadata": {"name": "p", "namespace": "s"}},
        ),
        (
            call_apply,
            f"PATCH {POD}",
            {"fieldManager": "lockstep", "force": "true"},
            {**IDENTITY, "metadata": {"name": "p"}},
        ),
        (
            call_json_patch,
            f"PATCH {POD}",
            {"fieldManager": "lockstep"},
            [{"op": "remove", "path": "/x"}],
        ),
        (
            call_delete,
            f"DELETE {POD}",
            {},
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Foreground",
                "preconditions": {"uid": "u"},
            },
        ),
        (
            call_bind,
            f"POST {POD}/binding",
            {},
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {
                    "name": "p",
                    "namespace": "s",
                    "uid": "u",
                    "annotations": {"a": "b"},
                },
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
            },
        ),
        (
            call_evict,
            f"POST {POD}/eviction",
            {},
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "p", "namespace": "s"},
                "deleteOptions": {"gracePeriodSeconds": 3},
            },
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_what_goes_over_the_wire(
    fake: FakeServer, call: Any, line: str, query: dict[str, str], body: Any
) -> None:
    async with fake.client() as client:
        await call(client)
    [seen] = fake.seen
    assert (f"{seen.method} {seen.path}", seen.query) == (line, query)
    assert (json.loads(seen.body) if seen.body else None) == body


async def test_a_watch_without_a_version_is_never_sent(fake: FakeServer) -> None:
    async with fake.client() as client:
        with pytest.raises(ValueError, match="resourceVersion"):
            await anext(client.watch(CONFIG_MAPS, resource_version=""))
    assert fake.seen == []


async def test_a_watch_ends_with_what_the_server_says(fake: FakeServer) -> None:
    fake.put("a", "x")
    fake.faults.append(Fault("gone", after=1))
    async with fake.client() as client:
        events = client.watch(CONFIG_MAPS, resource_version="1")
        assert (await anext(events)).type == "ADDED"
        with pytest.raises(Gone):
            await anext(events)


async def test_a_silent_watch_is_given_up(fake: FakeServer) -> None:
    fake.faults.append(Fault("stall"))
    async with fake.client() as client:
        with pytest.raises(Unreachable, match="nothing came"):
            await anext(client.watch(CONFIG_MAPS, resource_version="1", silence=0.1))


async def test_a_fence_holds_writes_back_but_not_reads(fake: FakeServer) -> None:
    def closed() -> None:
        raise NotLeading("somebody else leads")

    async with fake.client() as client:
        client.fence(closed)
        await client.get(CONFIG_MAPS, "x")
        for write in (call_create, call_apply, call_delete, call_bind):
            with pytest.raises(NotLeading):
                await write(client)
        assert [seen.method for seen in fake.seen] == ["GET"]
        await call_create(client.unfenced())
        client.fence(None)
        await call_create(client)


async def test_requests_are_observed(fake: FakeServer) -> None:
    observed: list[tuple[str, int]] = []
    fake.faults.append(Fault("status", status=503))
    async with fake.client() as client:
        client.observe(lambda method, status, _: observed.append((method, status)))
        await client.get(CONFIG_MAPS, "x")
    assert observed == [("GET", 503), ("GET", 200)]
