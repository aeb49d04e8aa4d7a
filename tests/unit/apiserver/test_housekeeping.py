"""The server tidies up after its objects: what is decided is done, also after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import eventually

from lockstep.apiserver.auth.rbac import GROUP, Rbac
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.bootstrap import create_missing
from lockstep.apiserver.catalog import Catalog
from lockstep.apiserver.controllers.housekeeping import Housekeeper
from lockstep.apiserver.controllers.rbac import RbacWatch
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.store import Key, Store, StoreUnavailable

Json = dict[str, Any]
OPTIONS = WriteOptions(manager="test", validation="Ignore")
HOUR = 3600.0


class Server:
    """What of the server the housekeeper works with, on a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.now = 1_800_000_000.0
        self.store = Store(path / "store.db", synchronous="OFF")
        self.objects = Objects(self.store, Catalog(), clock=lambda: self.now)
        self.rbac = Rbac()
        RbacWatch(self.store, self.rbac).start()
        self.keeper = Housekeeper(self.objects, self.rbac)

    async def create(self, plural: str, obj: Json, *, group: str = "", namespace: str = "") -> str:
        served = self.objects.catalog.find(group, "v1", plural)
        assert served is not None
        kind = {"apiVersion": served.kind.api_version, "kind": served.kind.kind}
        await self.objects.create(served, namespace, {**kind, **obj}, OPTIONS)
        record = self.store.get(Key(served.storage, namespace, obj["metadata"]["name"]))
        assert record is not None
        return record.meta.uid

    async def delete(
        self, plural: str, name: str, *, namespace: str = "", propagation: str = ""
    ) -> None:
        served = self.objects.catalog.find("", "v1", plural)
        assert served is not None
        await self.objects.delete(served, namespace, name, Deletion(propagation=propagation))

    def names(self, storage: str, namespace: str = "") -> set[str]:
        return {record.key.name for record in self.store.objects(storage, namespace)}

    async def settle(self) -> None:
        for _ in range(5):
            await self.keeper.tidy()


def config_map(name: str, *owner_uids: str) -> Json:
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid} for uid in owner_uids
    ]
    return {"metadata": {"name": name, **({"ownerReferences": owners} if owners else {})}}


def pod(name: str, node: str = "") -> Json:
    spec: Json = {"containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": {**spec, **({"nodeName": node} if node else {})}}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path)
    await server.create("namespaces", {"metadata": {"name": "a"}})
    yield server
    await server.store.close()


async def test_work_due_during_downtime_is_done_at_the_start(
    server: Server,
) -> None:
    uid = await server.create("configmaps", config_map("owner"), namespace="a")
    await server.create("configmaps", config_map("kept", uid), namespace="a")
    await server.create("configmaps", config_map("lost", "no-such-uid"), namespace="a")
    await server.delete("namespaces", "a")
    await server.create("namespaces", {"metadata": {"name": "b"}})
    await server.create("configmaps", config_map("lost", "no-such-uid"), namespace="b")
    server.keeper.start()
    await server.settle()
    assert server.names("namespaces") == {"b"}
    assert server.names("configmaps") == set()


async def test_dependents_go_with_their_owner(server: Server) -> None:
    server.keeper.start()
    uid = await server.create("configmaps", config_map("owner"), namespace="a")
    for n in range(5):
        await server.create("configmaps", config_map(f"c{n}", uid), namespace="a")
    await server.settle()
    assert len(server.names("configmaps")) == 6
    await server.delete("configmaps", "owner", namespace="a", propagation="Foreground")
    await server.settle()
    assert server.names("configmaps") == set()


async def test_pods_of_a_deleted_node_are_removed_without_grace(server: Server) -> None:
    server.keeper.start()
    await server.create("nodes", {"metadata": {"name": "n"}})
    await server.create("pods", pod("on-n", "n"), namespace="a")
    await server.create("pods", pod("unbound"), namespace="a")
    await server.create("pods", pod("lost", "never-there"), namespace="a")
    server.now += 60
    await server.settle()
    assert server.names("pods") == {"on-n", "unbound"}
    await server.delete("nodes", "n")
    await server.settle()
    assert server.names("pods") == {"on-n", "unbound"}
    server.now += 60
    await server.settle()
    assert server.names("pods") == {"unbound"}


async def test_events_are_kept_for_an_hour_after_their_last_write(server: Server) -> None:
    def event(name: str) -> Json:
        return {
            "metadata": {"name": name},
            "involvedObject": {"namespace": "a"},
            "reason": "R",
            "message": "m",
            "type": "Normal",
        }

    await server.create("events", event("before"), namespace="a")
    server.now += HOUR / 2
    server.keeper.start()
    await server.create("events", event("after"), namespace="a")
    await server.settle()
    assert server.names("events") == {"before", "after"}
    server.now += HOUR / 2
    await server.settle()
    assert server.names("events") == {"after"}
    server.now += HOUR / 2
    await server.settle()
    assert server.names("events") == set()


async def test_aggregated_roles_show_the_rules_that_they_gather(server: Server) -> None:
    await create_missing(server.objects)
    server.keeper.start()
    await server.settle()

    def rules(name: str) -> list[Json]:
        record = server.store.get(Key(f"clusterroles.{GROUP}", "", name))
        assert record is not None
        found: list[Json] = record.object()["rules"]
        return found

    wish = Attributes("get", "x.io", resource="things")
    assert all("x.io" not in (rule.get("apiGroups") or ()) for rule in rules("view"))
    extension = {
        "metadata": {
            "name": "x-view",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        },
        "rules": [{"apiGroups": ["x.io"], "resources": ["things"], "verbs": ["get"]}],
    }
    await server.create("clusterroles", extension, group=GROUP)
    await server.settle()
    for name in ("view", "edit", "admin"):
        assert extension["rules"][0] in rules(name)
        assert any(r.allows(wish) for r in server.rbac.role_rules("ClusterRole", name, ""))


async def test_what_cannot_be_done_now_is_done_later(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.apiserver.controllers.housekeeping._RETRY_SECONDS", 0.0)
    await server.create("configmaps", config_map("lost", "no-such-uid"), namespace="a")
    failures = 3
    done = server.objects.delete

    async def flaky(*args: Any, **kwargs: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailable("disk full")
        return await done(*args, **kwargs)

    monkeypatch.setattr(server.objects, "delete", flaky)
    server.keeper.start()
    task = asyncio.create_task(server.keeper.run())
    await eventually(lambda: not server.names("configmaps"))
    task.cancel()
    assert failures == 0


async def test_a_namesake_of_a_deleted_object_is_left_alone(server: Server) -> None:
    await server.create("configmaps", config_map("x", "no-such-uid"), namespace="a")
    server.keeper.start()
    await server.delete("configmaps", "x", namespace="a")
    await server.create("configmaps", config_map("x"), namespace="a")
    await server.settle()
    assert server.names("configmaps") == {"x"}
