"""Quotas and limit ranges of a namespace: what is written is held to them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.resource_requests import Json, pod, resources

from lockstep.apiserver.bootstrap import create_missing
from lockstep.apiserver.catalog import Catalog
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Store

OPTIONS = WriteOptions()


class Namespace:
    """The namespace default of a server's store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    async def create(self, plural: str, name: str, group: str = "", **fields: Any) -> None:
        served = self.objects.catalog.find(group, "v1", plural)
        assert served is not None
        kind = {"apiVersion": served.kind.api_version, "kind": served.kind.kind}
        obj = {**kind, "metadata": {"name": name}, **fields}
        await self.objects.create(served, "default", obj, OPTIONS)

    async def pod(self, name: str, *containers: Json, **spec: Any) -> None:
        await self.create("pods", name, spec=pod(*containers, **spec)["spec"])

    async def quota(self, name: str = "q", **hard: str) -> None:
        names = {key.replace("__", "."): value for key, value in hard.items()}
        await self.create("resourcequotas", name, spec={"hard": names})

    async def delete(self, plural: str, name: str) -> None:
        served = self.objects.catalog.find("", "v1", plural)
        assert served is not None
        await self.objects.delete(served, "default", name, Deletion(grace=0))

    async def phase(self, name: str, phase: str) -> None:
        served = self.objects.catalog.find("", "v1", "pods")
        assert served is not None

        def ended(one: Json) -> Json:
            return {**one, "status": {**one["status"], "phase": phase}}

        await self.objects.change(served, "default", name, ended, OPTIONS, subresource="status")

    def used(self, quota: str = "q") -> dict[str, str]:
        for account in self.objects.limits.ledger.accounts("default"):
            if account.record.key.name == quota:
                return {name: str(amount) for name, amount in account.used.items()}
        raise KeyError(quota)


@pytest.fixture
async def namespace(tmp_path: Path) -> AsyncIterator[Namespace]:
    store = Store(tmp_path / "store.db", synchronous="OFF")
    objects = Objects(store, Catalog())
    await create_missing(objects)
    yield Namespace(objects)
    await store.close()


async def test_what_does_not_fit_is_refused_with_the_numbers(namespace: Namespace) -> None:
    await namespace.quota(requests__cpu="2", limits__memory="2Gi")
    await namespace.pod("half", resources({"cpu": "500m"}, {"memory": "1Gi"}))
    with pytest.raises(StatusError) as refused:
        await namespace.pod("both", resources({"cpu": "1800m"}, {"memory": "1500Mi"}))
    assert refused.value.code == 403
    assert str(refused.value) == (
        'pods "both" is forbidden: exceeded quota: q, '
        "requested: limits.memory=1500Mi,requests.cpu=1800m, "
        "used: limits.memory=1Gi,requests.cpu=500m, limited: limits.memory=2Gi,requests.cpu=2"
    )


async def test_what_a_quota_limits_must_be_named(namespace: Namespace) -> None:
    await namespace.quota(requests__cpu="2", limits__memory="2Gi", pods="5")
    with pytest.raises(StatusError) as refused:
        await namespace.pod("silent", {}, resources({"cpu": "1"}))
    assert str(refused.value).endswith(
        "failed quota: q: must specify limits.memory for: c0,c1; requests.cpu for: c0"
    )


async def test_simultaneous_requests_cannot_exceed_the_quota(namespace: Namespace) -> None:
    await namespace.quota(pods="3")
    done = await asyncio.gather(
        *(namespace.pod(f"p{i}", {}) for i in range(10)), return_exceptions=True
    )
    assert sum(one is None for one in done) == 3
    assert namespace.used() == {"pods": "3"}


async def test_what_ends_or_goes_is_free_again(namespace: Namespace) -> None:
    await namespace.quota(pods="2")
    await namespace.pod("ends", {})
    await namespace.pod("goes", {})
    with pytest.raises(StatusError, match="exceeded quota"):
        await namespace.pod("third", {})
    await namespace.phase("ends", "Succeeded")
    await namespace.delete("pods", "goes")
    assert namespace.used() == {"pods": "0"}
    await namespace.pod("third", {})


async def test_a_quota_counts_what_was_there_before_it(namespace: Namespace) -> None:
    for name in ("a", "b"):
        await namespace.create("configmaps", name)
    await namespace.quota(configmaps="3", **{"count/configmaps": "9"})
    await namespace.create("configmaps", "c")
    assert namespace.used() == {"configmaps": "3", "count/configmaps": "3"}
    with pytest.raises(StatusError, match="used: configmaps=3, limited: configmaps=3"):
        await namespace.create("configmaps", "d")


async def test_a_quota_and_what_it_counts_may_come_together(namespace: Namespace) -> None:
    await asyncio.gather(
        namespace.create("configmaps", "before"),
        namespace.quota(configmaps="9"),
        namespace.create("configmaps", "after"),
    )
    assert namespace.used() == {"configmaps": "2"}


async def test_limits_of_the_namespace_are_filled_in_and_held(namespace: Namespace) -> None:
    item = {"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}
    await namespace.create("limitranges", "lr", spec={"limits": [item]})
    await namespace.quota(requests__cpu="10")
    await namespace.pod("plain", {})
    assert namespace.used() == {"requests.cpu": "1"}
    with pytest.raises(StatusError, match="maximum cpu usage per Container is 2, but limit is 3"):
        await namespace.pod("large", resources(limits={"cpu": "3"}))


@settings(deadline=None, max_examples=examples(30))
@given(st.lists(st.sampled_from(["create", "delete", "end", "quota"]), max_size=25))
def test_the_books_agree_with_a_count(steps: list[str]) -> None:
    async def play(path: Path) -> None:
        store = Store(path / "store.db", synchronous="OFF")
        objects = Objects(store, Catalog())
        await create_missing(objects)
        here = Namespace(objects)
        await here.quota("first", pods="100", requests__cpu="100")
        there: list[str] = []
        for number, step in enumerate(steps):
            if step == "create":
                await here.pod(f"p{number}", resources({"cpu": f"{number + 1}00m"}))
                there.append(f"p{number}")
            elif step == "quota":
                await here.quota(f"q{number}", pods="100", requests__cpu="100")
            elif there and step == "delete":
                await here.delete("pods", there.pop())
            elif there:
                await here.phase(there[0], "Failed")
        for account in objects.limits.ledger.accounts("default"):
            wanted: dict[str, Any] = {}
            for record in store.objects("pods"):
                for name, amount in account.usage_of("pods", record.object()).items():
                    wanted[name] = wanted.get(name, 0) + amount.value
            assert {n: a.value for n, a in account.used.items() if a.value} == wanted
        await store.close()

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(play(Path(place)))
