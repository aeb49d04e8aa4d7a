"""The informer against servers that drop, stall, repeat and forget."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.fake_server import FakeServer, Fault
from tests.support.objects import History
from tests.support.waiting import eventually

from lockstep.api.backoff import Backoff
from lockstep.api.core import CONFIG_MAPS, ConfigMap
from lockstep.kube.cache import Change, key_of
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer

QUICK = Backoff(initial=0.01, cap=0.05, jitter=0.5)


@contextlib.asynccontextmanager
async def following(client: Client, **options: Any) -> AsyncIterator[Informer[ConfigMap]]:
    informer = Informer(client, CONFIG_MAPS, **{"backoff": QUICK, **options})
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Copy:
    """A subscriber that keeps its own copy from what it is told alone."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], ConfigMap] = {}

    def __call__(self, change: Change[ConfigMap]) -> None:
        key = key_of(change.object)
        if change.new is None:
            del self.objects[key]
        else:
            self.objects[key] = change.new

    @property
    def values(self) -> dict[str, str]:
        return {name: obj.data["value"] for (_, name), obj in self.objects.items()}


def values(fake: FakeServer) -> dict[str, str]:
    return {name: obj.data["value"] for name, obj in fake.history.objects.items()}


async def test_a_fresh_copy_begins_with_the_newest_state_and_time(
    fake: FakeServer,
) -> None:
    fake.put("c", "x")
    fake.faults.append(Fault("status", status=403))
    async with fake.client() as client:
        informer = Informer(client, CONFIG_MAPS, backoff=QUICK)
        informer.fresh = True
        began = asyncio.get_running_loop().time()
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        await eventually(lambda: len(fake.seen) == 3)
        task.cancel()
    refused, listed, watched = fake.seen
    assert not refused.watch
    assert "resourceVersion" not in listed.query
    assert watched.query["resourceVersion"] == str(fake.history.version)
    assert informer.known_at is not None
    assert began < informer.known_at


def a_fault(rng: random.Random) -> Fault | None:
    kind = rng.choice(["status", "drop", "cut", "stall", "gone", "end", ""])
    if not kind:
        return None
    return Fault(kind, after=rng.randrange(6), status=rng.choice([429, 500, 503, 410]))


@pytest.mark.parametrize("streams", [True, False], ids=["streaming list", "pages"])
@pytest.mark.parametrize("seed", range(4))
async def test_the_cache_becomes_what_the_server_is_through_every_fault(
    seed: int, streams: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a test, to be repeated exactly
    fake = FakeServer(streams=streams)
    fake.repeats = rng.random() < 0.5
    await fake.start()
    for n in range(5):
        fake.put(f"c{n}", "at first")
    fake.faults.extend(a_fault(rng) for _ in range(25))
    copy = Copy()
    async with fake.client(deadline=2.0) as client, following(client, silence=0.05) as informer:
        informer.subscribe(copy)
        for step in range(60):
            name = f"c{rng.randrange(8)}"
            if rng.random() < 0.3:
                fake.delete(name)
            else:
                fake.put(name, str(step))
            if rng.random() < 0.1:
                fake.history.compact()
            await asyncio.sleep(0)
        fake.put("last", "last")
        await eventually(lambda: not fake.faults and copy.values == values(fake), 60)
        assert {one.metadata.name for one in informer} == set(values(fake))
    await fake.close()
    assert all(seen.query.get("resourceVersion") for seen in fake.seen if seen.watch)


async def test_it_goes_on_where_it_was_without_reading_everything_again(
    fake: FakeServer,
) -> None:
    fake.put("a", "1")
    fake.faults.append(Fault("cut", after=4))
    async with fake.client() as client, following(client) as informer:
        await informer.wait_synced()
        fake.put("b", "2")
        fake.put("c", "3")
        await eventually(lambda: len(informer) == 3)
    requests = [(seen.query.get("sendInitialEvents"), seen.watch) for seen in fake.seen]
    assert requests == [("true", True), (None, True)]


async def test_a_server_restored_from_a_backup_is_followed_back(
    fake: FakeServer,
) -> None:
    for n in range(5):
        fake.put("a", str(n))
    backup = History()
    backup.put("b", "from the backup")
    copy = Copy()
    async with fake.client() as client, following(client) as informer:
        informer.subscribe(copy)
        await eventually(lambda: copy.values == {"a": "4"})
        fake.restore(backup)
        await eventually(lambda: copy.values == {"b": "from the backup"})
        fake.put("b", "later")
        await eventually(lambda: copy.values == {"b": "later"})


async def test_failures_are_followed_by_growing_waits(fake: FakeServer) -> None:
    fake.faults.extend([Fault("status", status=403)] * 6)
    growing = Backoff(initial=0.02, cap=10.0, jitter=0.0)
    async with fake.client() as client, following(client, backoff=growing) as informer:
        await informer.wait_synced()
        assert informer.problem == ""
    times = [seen.at for seen in fake.seen]
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert all(wait >= 0.02 * 2**n for n, wait in enumerate(waits))


async def test_what_keeps_it_from_following_is_said(fake: FakeServer) -> None:
    fake.faults.extend([Fault("status", status=403)] * 1000)
    async with fake.client() as client, following(client) as informer:
        await eventually(lambda: "made to fail with 403" in informer.problem)
        assert not informer.synced


async def test_each_subscriber_begins_with_what_is_there(fake: FakeServer) -> None:
    fake.put("a", "1")
    async with fake.client() as client, following(client) as informer:
        await informer.wait_synced()
        early, late = Copy(), Copy()
        informer.subscribe(early)
        fake.put("b", "2")
        await eventually(lambda: "b" in early.values)
        end = informer.subscribe(late)
        assert late.values == early.values == {"a": "1", "b": "2"}
        end()
        fake.delete("a")
        await eventually(lambda: "a" not in early.values)
        assert "a" in late.values


async def test_a_subscriber_that_fails_does_not_harm_the_others(fake: FakeServer) -> None:
    def broken(_: Change[ConfigMap]) -> None:
        raise RuntimeError("broken")

    copy = Copy()
    async with fake.client() as client, following(client) as informer:
        informer.subscribe(broken)
        informer.subscribe(copy)
        fake.put("a", "1")
        await eventually(lambda: copy.values == {"a": "1"})


async def test_objects_are_found_by_index(fake: FakeServer) -> None:
    def colours(obj: ConfigMap) -> list[str]:
        return [obj.data["value"]]

    async with fake.client() as client, following(client, indices={"c": colours}) as informer:
        await informer.wait_synced()
        fake.put("a", "red")
        fake.put("b", "red")
        await eventually(lambda: len(informer.by_index("c", "red")) == 2)
        fake.put("a", "blue")
        await eventually(lambda: len(informer.by_index("c", "red")) == 1)
        assert [one.metadata.name for one in informer.by_index("c", "blue")] == ["a"]


async def test_a_server_is_followed_through_its_death(any_server: ApiServer) -> None:
    copy = Copy()
    async with any_server.client() as client, following(client, namespace="default") as informer:
        informer.subscribe(copy)
        await informer.wait_synced()

        async def create(*names: str) -> None:
            for name in names:
                body = {"metadata": {"name": name, "namespace": "default"}, "data": {"value": name}}
                await client.create(CONFIG_MAPS, body)

        await create("a", "b")
        await eventually(lambda: {"a", "b"} <= set(copy.values))
        await asyncio.to_thread(any_server.kill)
        await asyncio.to_thread(any_server.start)
        await create("c")
        await client.delete(CONFIG_MAPS, "a", "default")

        def same() -> bool:
            ours = {name for name in copy.values if len(name) == 1}
            return ours == {"b", "c"} == {o.metadata.name for o in informer if o.data.get("value")}

        await eventually(same)
