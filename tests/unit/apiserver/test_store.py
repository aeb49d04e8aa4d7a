"""The store: revisions, group commit, history, compaction, failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lockstep.apiserver.store import (
    Compacted,
    Key,
    LogInUse,
    Record,
    Store,
    StoreUnavailable,
)
from lockstep.apiserver.store.log import Log, Row


def key(name: str, resource: str = "things") -> Key:
    return Key(resource, "space", name)


def thing(name: str, **data: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, **data}


def opened(directory: Path, **options: Any) -> Store:
    """A store that does not wait for the disk: what is tested is order, not power cuts."""
    return Store(directory / "db", synchronous="OFF", **options)


def names(records: list[Record]) -> list[str]:
    return sorted(record.key.name for record in records)


async def test_readers_see_durable_writes_and_writers_see_theirs_immediately(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    done = store.put(key("a"), thing("a"))
    assert store.get(key("a")) is None
    ahead = store.newest(key("a"))
    assert ahead is not None
    assert await done is ahead is store.get(key("a"))
    await store.close()


async def test_every_write_has_its_revision_in_order_of_decision(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    records = await asyncio.gather(*(store.put(key(f"n{i}"), thing(f"n{i}")) for i in range(300)))
    assert [record.revision for record in records] == list(range(1, 301))
    assert store.revision == 300
    assert all(str(r.revision) == r.object()["metadata"]["resourceVersion"] for r in records)
    await store.close()


async def test_what_is_written_is_there_after_reopening(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.put(key("kept"), thing("kept", n=1))
    await store.put(key("kept"), thing("kept", n=2))
    await store.put(key("gone"), thing("gone"))
    await store.remove(key("gone"), thing("gone"))
    await store.close()
    again = opened(tmp_path)
    assert names(again.objects("things")) == ["kept"]
    kept = again.get(key("kept"))
    assert kept is not None
    assert kept.object()["n"] == 2
    assert [e.deleted for e in again.since("things", 0)] == [False, False, False, True]
    assert (await again.put(key("next"), thing("next"))).revision == 5
    await again.close()


async def test_listeners_get_batches_in_order_before_writers_are_told(tmp_path: Path) -> None:
    store = opened(tmp_path)
    seen: list[int] = []
    store.subscribe(lambda events: seen.extend(event.revision for event in events))

    async def write(number: int) -> None:
        record = await store.put(key(f"n{number}"), thing(f"n{number}"))
        assert record.revision in seen

    await asyncio.gather(*map(write, range(50)))
    assert seen == sorted(seen)
    assert len(seen) == 50
    await store.close()


async def test_an_old_list_is_what_was_there_then(tmp_path: Path) -> None:
    store = opened(tmp_path)
    states: dict[int, list[str]] = {0: []}
    for step in ("+a", "+b", "+c", "-b", "+b", "-a"):
        change = store.put if step[0] == "+" else store.remove
        await change(key(step[1]), thing(step[1]))
        states[store.revision] = names(store.objects("things"))
    for revision, expected in states.items():
        assert names(store.objects_at("things", "", revision)) == expected
    await store.close()


async def test_compaction_keeps_the_present_and_refuses_the_past(tmp_path: Path) -> None:
    store = opened(tmp_path, max_events=100)
    for number in range(250):
        await store.put(key(f"n{number % 10}"), thing(f"n{number % 10}", number=number))
    assert store.compacted > 100
    with pytest.raises(Compacted):
        store.since("things", store.compacted - 1)
    with pytest.raises(Compacted):
        store.objects_at("things", "", store.compacted - 1)
    assert len(store.since("things", store.compacted)) == store.revision - store.compacted
    compacted = store.compacted
    await store.put(key("last"), thing("last"))
    await store.close()
    log = Log(tmp_path / "db")
    assert len(list(log.rows())) < 130
    log.close()
    again = opened(tmp_path)
    assert again.compacted == compacted
    assert len(names(again.objects("things"))) == 11
    numbers = {r.object()["number"] for r in again.objects("things") if r.key.name != "last"}
    assert numbers == set(range(240, 250))
    await again.close()


async def test_what_a_crash_leaves_of_a_compaction_is_deleted_later(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(1200):
        await store.put(key("same"), thing("same", number=number))
    store.compact(store.revision)
    await store.put(key("other"), thing("other"))
    await store.close()
    log = Log(tmp_path / "db")
    left = len(list(log.rows()))
    log.close()
    assert 2 < left < 1200
    again = opened(tmp_path)
    assert names(again.objects("things")) == ["other", "same"]
    for _ in range(3):
        await again.put(key("other"), thing("other"))
    await again.close()
    log = Log(tmp_path / "db")
    assert {row.name for row in log.rows()} == {"other", "same"}
    assert len(list(log.rows())) <= 5
    log.close()


async def test_compaction_up_to_the_newest_deletion_never_reuses_its_revision(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    await store.put(key("a"), thing("a"))
    await store.remove(key("a"), thing("a"))
    store.compact(store.revision)
    await store.put(key("b"), thing("b"))
    await store.remove(key("b"), thing("b"))
    store.compact(store.revision)
    await store.close()
    again = opened(tmp_path)
    assert (await again.put(key("c"), thing("c"))).revision > 4
    await again.close()


async def test_a_revision_that_never_was_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    with pytest.raises(Compacted):
        store.since("things", 7)
    await store.close()


async def test_a_failed_transaction_fails_its_writers_and_their_dependants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    await store.put(key("before"), thing("before"))

    def full(_log: Log, _rows: list[Row]) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Log, "append", full)
        results = await asyncio.gather(
            store.put(key("lost"), thing("lost")),
            store.put(key("lost"), thing("lost", more=1)),
            return_exceptions=True,
        )
    assert [type(result) for result in results] == [StoreUnavailable] * 2
    assert store.newest(key("lost")) is None
    after = await store.put(key("after"), thing("after"))
    assert names(store.objects("things")) == ["after", "before"]
    assert after.revision > 2
    await store.close()


def test_two_servers_cannot_have_one_file(tmp_path: Path) -> None:
    first = Log(tmp_path / "db")
    with pytest.raises(LogInUse, match="in use by another API server"):
        Log(tmp_path / "db")
    first.close()
    Log(tmp_path / "db").close()


@pytest.mark.parametrize("size", [1, 2, 8, 9, 31, 128, 129, 300])
def test_batches_of_any_size_are_written_whole(tmp_path: Path, size: int) -> None:
    log = Log(tmp_path / "db")
    rows = [Row(n + 1, "things", "space", f"n{n}", 0, b"{}") for n in range(size)]
    log.append(rows)
    assert list(log.rows()) == rows
    log.close()


def test_a_batch_with_a_bad_row_writes_nothing(tmp_path: Path) -> None:
    import sqlite3

    log = Log(tmp_path / "db")
    rows = [Row(n + 1, "things", "space", f"n{n}", 0, b"{}") for n in range(9)]
    with pytest.raises(sqlite3.IntegrityError):
        log.append([*rows, rows[0]])
    assert list(log.rows()) == []
    log.append(rows)
    assert list(log.rows()) == rows
    log.close()
