"""The watch cache: one encoding, bounded queues, who sees what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import eventually

from lockstep.apiserver.catalog import Catalog, Served
from lockstep.apiserver.representation import MetadataOnly, Whole
from lockstep.apiserver.store import Event, Key, Record, Store
from lockstep.apiserver.watch import Hub, Watcher, WatchRequest, watch_stream
from lockstep.apiserver.watch.hub import LONGEST_PAUSE, PAUSE
from lockstep.http.message import Write


@pytest.fixture(scope="module")
def served() -> Served:
    found = Catalog().find("", "v1", "configmaps")
    assert found is not None
    return found


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
    }


def record(revision: int, name: str = "a", **labels: str) -> Record:
    obj = config_map(name, **labels)
    obj["metadata"]["resourceVersion"] = str(revision)
    return Record(Key("configmaps", "default", name), revision, json.dumps(obj).encode())


def watcher(served: Served, **options: Any) -> Watcher:
    match = options.pop("match", None)
    return Watcher("configmaps", options.pop("namespace", ""), match, Whole(served), **options)


def is_on(found: Record) -> bool:
    return found.labels.get("on") == "yes"


# Labels before and after (None: not there), and what a watch of on=yes sees.
SEEN = [
    (None, "yes", "ADDED"),
    (None, "no", None),
    ("no", "yes", "ADDED"),
    ("yes", "yes", "MODIFIED"),
    ("yes", "no", "DELETED"),
    ("no", "no", None),
    ("yes", None, "DELETED"),
    ("no", None, None),
]


@pytest.mark.parametrize(("before", "after", "expected"), SEEN)
def test_what_a_selective_watch_sees(
    served: Served, before: str | None, after: str | None, expected: str | None
) -> None:
    old = record(1, on=before) if before else None
    event = Event(record(2, on=after or before or ""), old, deleted=after is None)
    line = watcher(served, match=is_on).line(event)
    assert (json.loads(line)["type"] if line else None) == expected
    if line:
        # Whatever happened, the client can resume from here.
        assert json.loads(line)["object"]["metadata"]["resourceVersion"] == "2"


def test_an_event_is_encoded_once_for_each_form(served: Served) -> None:
    event = Event(record(1), None)
    first, second = watcher(served), watcher(served)
    assert first.line(event) is second.line(event)
    partial = Watcher("configmaps", "", None, MetadataOnly(served))
    assert partial.line(event) is not first.line(event)


def test_another_namespace_is_not_seen(served: Served) -> None:
    assert watcher(served, namespace="other").line(Event(record(1), None)) is None


class Pauses:
    """Time as the hub sees it: its pauses last until the test ends them."""

    def __init__(self) -> None:
        self.lengths: list[float] = []
        self.end: Callable[[], None] = lambda: None

    def __call__(self, seconds: float, call: Callable[[], None]) -> None:
        self.lengths.append(seconds)
        self.end = call


class Woken(Watcher):
    """A watcher that counts how often its stream is woken."""

    count = 0

    def wake(self) -> None:
        self.count += 1
        super().wake()


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def watchers(served: Served, hub: Hub, number: int, match: Any = None) -> list[Woken]:
    made = [Woken("configmaps", "", match, Whole(served)) for _ in range(number)]
    for one in made:
        hub.add(one)
    return made


def test_in_a_storm_watchers_get_several_events_at_a_time(served: Served, pauses: Pauses) -> None:
    hub = Hub(pauses)
    (one,) = watchers(served, hub, 1)
    for revision in range(1, 6):
        hub.publish([Event(record(revision), None)])
    assert one.count == 1, "the first at once, the others when the pause is over"
    pauses.end()
    assert one.count == 2
    versions = [json.loads(line)["object"]["metadata"]["resourceVersion"] for line in one.take()]
    assert versions == ["1", "2", "3", "4", "5"]


def test_after_a_quiet_moment_watchers_are_woken_at_once(served: Served, pauses: Pauses) -> None:
    hub = Hub(pauses)
    (one,) = watchers(served, hub, 1)
    hub.publish([Event(record(1), None)])
    pauses.end()
    hub.publish([Event(record(2), None)])
    assert one.count == 2


def test_a_pause_grows_with_the_number_of_woken_watchers(served: Served, pauses: Pauses) -> None:
    hub = Hub(pauses)
    watchers(served, hub, 3, match=is_on)
    watchers(served, hub, 200, match=lambda found: found.labels.get("on") == "no")
    hub.publish([Event(record(1, on="yes"), None)])
    pauses.end()
    hub.publish([Event(record(2, on="no"), None)])
    assert pauses.lengths == [pytest.approx(3 * PAUSE), LONGEST_PAUSE]


def test_nobody_is_woken_for_what_is_not_for_him(served: Served, pauses: Pauses) -> None:
    hub = Hub(pauses)
    (one,) = watchers(served, hub, 1, match=is_on)
    hub.publish([Event(record(1, on="no"), None)])
    assert (one.count, pauses.lengths) == (0, [])


def test_a_watcher_that_left_is_not_woken_any_more(served: Served, pauses: Pauses) -> None:
    hub = Hub(pauses)
    (one,) = watchers(served, hub, 1)
    hub.publish([Event(record(1), None)])
    hub.publish([Event(record(2), None)])
    hub.remove(one)
    pauses.end()
    assert one.count == 1


def test_an_overrun_watcher_that_falls_behind_gets_nothing_more(served: Served) -> None:
    hub, slow, quick = Hub(Pauses()), watcher(served, max_queue=3), watcher(served, max_queue=3)
    hub.add(slow)
    hub.add(quick)
    taken = []
    for revision in range(1, 8):
        hub.publish([Event(record(revision), None)])
        taken += quick.take()
    assert (slow.overrun, slow.take()) == (True, [])
    assert (quick.overrun, len(taken)) == (False, 7)
    hub.remove(slow)
    assert len(hub) == 1


class Client:
    """Takes what a stream writes; may be slow about it."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.reading = asyncio.Event()
        self.reading.set()

    async def write(self, data: bytes) -> None:
        self.lines += [json.loads(line) for line in data.splitlines()]
        await self.reading.wait()


def request(served: Served, **options: Any) -> WatchRequest:
    defaults: dict[str, Any] = {
        "resource": "configmaps",
        "namespace": "",
        "match": None,
        "representation": Whole(served),
        "revision": None,
        "initial_events": True,
        "initial_bookmark": False,
        "bookmarks": False,
        "timeout": 0.2,
    }
    return WatchRequest(**{**defaults, **options})


async def put(store: Store, name: str) -> int:
    obj = config_map(name)
    return (await store.put(Key("configmaps", "default", name), obj)).revision


async def test_a_slow_client_is_cut_off_and_resumes_without_gap(
    served: Served, tmp_path: Path
) -> None:
    store, hub, client = Store(tmp_path / "db", synchronous="OFF"), Hub(), Client()
    store.subscribe(hub.publish)
    stream = watch_stream(store, hub, request(served, timeout=30.0, max_queue=5))
    following = asyncio.ensure_future(stream.produce(client.write))
    await put(store, "first")
    await eventually(lambda: client.lines, what="the first line")
    client.reading.clear()
    for number in range(20):
        await put(store, f"n{number:02}")
    client.reading.set()
    await asyncio.wait_for(following, 10)
    assert len(hub) == 0
    seen = [line["object"]["metadata"]["name"] for line in client.lines]
    last = int(client.lines[-1]["object"]["metadata"]["resourceVersion"])
    again = Client()
    resumed = request(served, revision=last, initial_events=False)
    await watch_stream(store, hub, resumed).produce(again.write)
    seen += [line["object"]["metadata"]["name"] for line in again.lines]
    assert seen == ["first", *(f"n{number:02}" for number in range(20))]
    await store.close()


async def test_a_compacted_version_is_answered_with_gone_in_the_stream(
    served: Served, tmp_path: Path
) -> None:
    store, client = Store(tmp_path / "db", synchronous="OFF"), Client()
    for number in range(3):
        await put(store, f"n{number}")
    store.compact(2)
    old = request(served, revision=1, initial_events=False)
    await watch_stream(store, Hub(), old).produce(client.write)
    (line,) = client.lines
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )
    await store.close()


async def test_a_watch_ends_when_its_resource_is_no_longer_served(
    served: Served, tmp_path: Path
) -> None:
    store, hub, client = Store(tmp_path / "db", synchronous="OFF"), Hub(), Client()
    stream = watch_stream(store, hub, request(served, timeout=30.0))
    following = asyncio.ensure_future(stream.produce(client.write))
    await eventually(lambda: len(hub), what="the watch")
    hub.end("configmaps")
    await asyncio.wait_for(following, 10)
    await store.close()


async def test_a_client_that_goes_away_is_forgotten(served: Served, tmp_path: Path) -> None:
    store, hub = Store(tmp_path / "db", synchronous="OFF"), Hub()
    await put(store, "a")

    async def broken(_: bytes) -> None:
        raise ConnectionResetError

    write: Write = broken
    with pytest.raises(ConnectionResetError):
        await watch_stream(store, hub, request(served)).produce(write)
    assert len(hub) == 0
    await store.close()
