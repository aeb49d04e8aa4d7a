"""Controllers, leader election and health against the embedded server."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually, stretched

from lockstep.api.core import CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, ConfigMap
from lockstep.kube.client import Client
from lockstep.kube.election import Timing
from lockstep.kube.errors import ApiError, NotLeading
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.endpoints import Ports
from lockstep.runtime.manager import Manager

FAST = Timing(lease=2.0, fence=1.0, retry=0.1)


@contextlib.asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[asyncio.Task[None]]:
    told: list[str] = []
    task = asyncio.create_task(manager.run(told.append))
    try:
        await eventually(lambda: told or task.done(), what="ready")
        if task.done():
            await task
        yield task
    finally:
        await stop(task)


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def make(client: Client, name: str, value: str = "", space: str = "default") -> ConfigMap:
    body = {"metadata": {"name": name}, "data": {"value": value}}
    return await client.create(CONFIG_MAPS, body, space)


class Recorded:
    """A reconciler that notes what it is called for, and what it saw."""

    def __init__(self, see: Callable[[Key], Any]) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.see = see
        self.fail: dict[str, int] = {}
        self.again: dict[str, float] = {}
        self.under_way: set[Key] = set()
        self.overlaps = 0
        self.gate: asyncio.Event | None = None

    async def __call__(self, key: Key) -> float | None:
        self.overlaps += key in self.under_way
        self.under_way.add(key)
        try:
            found = self.see(key)
            self.calls.append((key[1], found and found.data.get("value")))
            if self.gate is not None:
                await self.gate.wait()
            await asyncio.sleep(0)
            if self.fail.get(key[1], 0):
                self.fail[key[1]] -= 1
                raise RuntimeError("made to fail")
            return self.again.pop(key[1], None)
        finally:
            self.under_way.discard(key)

    def of(self, name: str) -> list[Any]:
        return [value for called, value in self.calls if called == name]


def build(client: Client, space: str = "default", **options: Any) -> tuple[Manager, Recorded]:
    manager = Manager(client, name="tested", timing=FAST, **options)
    informer = manager.informer(CONFIG_MAPS, namespace=space)
    recorded = Recorded(lambda key: informer.get(*key))
    manager.add(Controller("maps", recorded).follow(informer))
    return manager, recorded


async def test_a_controller_is_called_for_what_changes(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        await make(client, "before", "1")
        manager, recorded = build(client, leader_elect=False)
        recorded.again["asks-again"] = 0.05
        recorded.fail["fails"] = 2
        async with running(manager):
            await eventually(lambda: recorded.of("before") == ["1"])
            await make(client, "asks-again", "1")
            await make(client, "fails", "1")
            await eventually(lambda: recorded.of("asks-again") == ["1", "1"])
            await eventually(lambda: recorded.of("fails") == ["1", "1", "1"])
            await client.delete(CONFIG_MAPS, "before")
            await eventually(lambda: recorded.of("before") == ["1", None])
        assert recorded.overlaps == 0


async def test_many_changes_during_a_call_are_one_more_call(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        manager, recorded = build(client, leader_elect=False)
        recorded.gate = asyncio.Event()
        informer = manager.informer(CONFIG_MAPS, namespace="default")
        async with running(manager):
            await make(client, "busy", "0")
            await eventually(lambda: recorded.of("busy") == ["0"])
            for n in range(1, 6):
                await client.patch(CONFIG_MAPS, "busy", {"data": {"value": str(n)}})

            def seen() -> bool:
                found = informer.get("default", "busy")
                return found is not None and found.data["value"] == "5"

            await eventually(seen)
            recorded.gate.set()
            await eventually(lambda: recorded.of("busy") == ["0", "5"])
        assert recorded.overlaps == 0


async def test_informers_are_shared(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        manager = Manager(client, name="m")
        one = manager.informer(CONFIG_MAPS)
        two = manager.informer(CONFIG_MAPS, indices={"value": lambda o: [o.data["value"]]})
        assert one is two
        assert one.by_index("value", "x") == []
        assert manager.informer(CONFIG_MAPS, namespace="default") is not one


async def test_a_first_leader_reads_while_leading_a_later_one_before(
    any_shared_server: ApiServer,
) -> None:
    async with any_shared_server.client() as a, any_shared_server.client() as b:
        managers = [
            Manager(client, name="fresh", identity=identity, timing=FAST)
            for client, identity in ((a, "first"), (b, "second"))
        ]
        first, second = (manager.informer(CONFIG_MAPS, fresh=True) for manager in managers)
        async with running(managers[0]):
            await eventually(lambda: managers[0].leading)
            assert first.known_at is not None
            assert first.known_at >= managers[0].led_since
            running_second = running(managers[1])
            await running_second.__aenter__()
        try:
            await eventually(lambda: managers[1].leading)
            assert second.known_at is not None
            assert second.known_at < managers[1].led_since
        finally:
            await running_second.__aexit__(None, None, None)


async def test_one_leads_and_the_next_takes_over_when_it_ends(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as a, any_shared_server.client() as b:
        first, called_first = build(a, identity="first", lease_namespace="elections")
        second, called_second = build(b, identity="second", lease_namespace="elections")
        async with running(first):
            await eventually(lambda: first.leading)
            async with running(second):
                await make(b.unfenced(), "while-first", "1")
                await eventually(lambda: called_first.of("while-first"))
                assert not second.leading
                assert called_second.calls == []
                with pytest.raises(NotLeading):
                    await make(b, "held-back")
                lease = await a.get(LEASES, "tested", "elections")
                assert lease.spec.holder_identity == "first"
        # The second has ended as well by now; a third finds the lease given back.
        third, called_third = build(b, identity="third", lease_namespace="elections")
        async with running(third):
            await eventually(lambda: third.leading, deadline=FAST.lease)
            await eventually(lambda: called_third.of("while-first"))


async def test_a_leader_that_cannot_renew_stops_before_its_lease_ends(
    any_server: ApiServer,
) -> None:
    async with any_server.client() as client:
        manager, recorded = build(client)
        client.deadline = 0.5
        recorded.gate = asyncio.Event()
        async with running(manager):
            await eventually(lambda: manager.leading)
            await make(client, "stuck")
            await eventually(lambda: recorded.under_way)
            await asyncio.to_thread(any_server.kill)
            await eventually(lambda: not manager.leading, deadline=FAST.lease)
            with pytest.raises(NotLeading):
                await make(client, "late")
            await eventually(lambda: not recorded.under_way)
            await asyncio.to_thread(any_server.start)
            await eventually(lambda: manager.leading)
            recorded.gate.set()
            await eventually(lambda: len(recorded.of("stuck")) == 2)


async def test_an_orderly_end_finishes_calls_and_returns_the_lease(
    any_shared_server: ApiServer,
) -> None:
    async with any_shared_server.client() as client:
        await client.create(NAMESPACES, {"metadata": {"name": "orderly"}})
        manager, recorded = build(client, "orderly", lease_namespace="orderly")
        recorded.gate = asyncio.Event()
        recorded.again["slow"] = 1e6
        async with running(manager) as task:
            await eventually(lambda: manager.leading)
            await make(client, "slow", space="orderly")
            await eventually(lambda: ("orderly", "slow") in recorded.under_way)
            task.cancel()
            await asyncio.sleep(0)
            assert recorded.under_way
            recorded.gate.set()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert "slow" not in recorded.again, "the call was cut off"
        lease = await client.unfenced().get(LEASES, "tested", "orderly")
        assert lease.spec.holder_identity == ""


async def test_a_task_that_fails_ends_the_process(any_shared_server: ApiServer) -> None:
    async def broken() -> None:
        raise LookupError("broken")

    async with any_shared_server.client() as client:
        manager = Manager(client, name="broken", timing=FAST)
        manager.add_task(broken)
        with pytest.raises(LookupError):
            await manager.run(lambda _: None)


def fetch(port: int | None, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_health_and_metrics_are_served_on_loopback(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        manager, recorded = build(client, ports=Ports(local=0), lease_namespace="healthy")
        async with running(manager):
            await make(client.unfenced(), "measured")
            await eventually(lambda: recorded.of("measured"))

            async def get(path: str) -> tuple[int, str]:
                return await asyncio.to_thread(fetch, manager.endpoints.ports.local, path)

            assert await get("/healthz") == (200, "ok\n")
            assert await get("/readyz") == (200, "ok\n")
            assert (await get("/nowhere"))[0] == 404
            status, text = await get("/metrics")
            assert status == 200
            lines = text.splitlines()
            assert 'lockstep_leader{name="tested"} 1.0' in lines
            for start in (
                'lockstep_client_requests_total{code="201",method="POST"} ',
                'lockstep_reconcile_seconds_count{controller="maps",outcome="success"} ',
                'lockstep_workqueue_wait_seconds_count{controller="maps"} ',
                'lockstep_informer_objects{resource="configmaps"} ',
            ):
                assert [float(x.rsplit(" ")[-1]) for x in lines if x.startswith(start)] > [0]


async def test_a_process_that_cannot_follow_is_not_ready(any_server: ApiServer) -> None:
    async with any_server.client() as client:
        any_server.kill()
        manager, _ = build(client, ports=Ports(local=0))
        task = asyncio.create_task(manager.run(lambda _: None))
        try:
            await eventually(lambda: manager.endpoints.ports.local)

            async def said() -> bool:
                status, text = await asyncio.to_thread(
                    fetch, manager.endpoints.ports.local, "/readyz"
                )
                return status == 503 and "configmaps" in text and "refused" in text

            await eventually(said)
        finally:
            await stop(task)


async def test_events_are_aggregated(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        manager = Manager(client, name="m", leader_elect=False)
        recorder = manager.recorder("talker")
        obj = await make(client, "talked-about")
        for _ in range(3):
            recorder.event(obj, "Warning", "NoRoom", "2 GPUs are short")
        await recorder.close()
        found = (await client.list(EVENTS, "default", field_selector="reason=NoRoom")).items
        assert [(e.count, e.message, e.involved_object.kind) for e in found] == [
            (3, "2 GPUs are short", "ConfigMap")
        ]


async def test_an_event_that_the_server_refuses_harms_nobody(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        recorder = Manager(client, name="m", leader_elect=False).recorder()
        obj = await make(client, "in-peace")
        with contextlib.suppress(ApiError):
            recorder.event(obj, "Strange", "Refused", "x")  # type: ignore[arg-type]
            recorder.event(obj, "Normal", "Taken", "y")
        await recorder.close()
        found = (await client.list(EVENTS, "default", field_selector="reason=Taken")).items
        assert len(found) == 1


async def test_an_informer_that_is_asked_for_late_follows_as_well(
    shared_server: ApiServer,
) -> None:
    async with shared_server.client() as client:
        await client.create(NAMESPACES, {"metadata": {"name": "late"}})
        await make(client, "there", space="late")
        manager, _ = build(client, leader_elect=False)
        async with running(manager):
            late = manager.informer(CONFIG_MAPS, namespace="late")
            await asyncio.wait_for(late.wait_synced(), stretched(20))
            assert late.get("late", "there") is not None
            assert manager.informer(CONFIG_MAPS, namespace="late") is late


async def test_a_process_ends_when_one_of_its_caches_stops(
    shared_server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shared_server.client() as client:
        manager, _ = build(client, leader_elect=False)
        broken = asyncio.Event()

        async def watch(*_: Any, **__: Any) -> AsyncIterator[None]:
            await broken.wait()
            raise RuntimeError("made to fail as nothing should")
            yield

        told: list[str] = []
        task = asyncio.create_task(manager.run(told.append))
        await eventually(lambda: told, what="ready")
        monkeypatch.setattr(client, "watch", watch)
        manager.informer(CONFIG_MAPS, namespace="other")
        broken.set()
        with pytest.raises(RuntimeError, match="as nothing should"):
            await asyncio.wait_for(task, stretched(20))
