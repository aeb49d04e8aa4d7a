"""Random histories of the store, against a model that keeps every state it ever had."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.apiserver.store import Compacted, Key, Store

State = dict[tuple[str, str], int]
"""By namespace and name, the revision of the object there."""

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("xy"), st.sampled_from("abc")),
        st.tuples(st.just("remove"), st.sampled_from("xy"), st.sampled_from("abc")),
        st.tuples(st.just("compact"), st.integers(0, 12), st.just("")),
        st.tuples(st.just("reopen"), st.just(""), st.just("")),
    ),
    max_size=40,
)


def state_of(store: Store) -> State:
    return {(r.key.namespace, r.key.name): r.revision for r in store.objects("things")}


async def play(steps: list[tuple[str, object, str]], path: Path) -> None:
    store = Store(path, synchronous="OFF")
    states: dict[int, State] = {0: {}}
    for action, where, name in steps:
        now = dict(states[max(states)])
        if action == "reopen":
            await store.close()
            store = Store(path, synchronous="OFF")
            assert state_of(store) == now
        elif action == "compact":
            store.compact(max(store.compacted, store.revision - int(str(where))))
        elif action == "put" or (str(where), name) in now:
            key = Key("things", str(where), name)
            obj = {"metadata": {"name": name, "uid": "u"}}
            record = await (store.put if action == "put" else store.remove)(key, obj)
            assert record.revision > max(states)
            now.pop((str(where), name), None)
            if action == "put":
                now[str(where), name] = record.revision
            states[record.revision] = now
        check(store, states)
    await store.close()


def check(store: Store, states: dict[int, State]) -> None:
    newest = max(states)
    assert state_of(store) == states[newest]
    for revision, expected in states.items():
        if revision < store.compacted:
            try:
                store.since("things", revision)
            except Compacted:
                continue
            raise AssertionError(f"{revision} is compacted, yet a watch could start there")
        then = store.objects_at("things", "", revision)
        assert {(r.key.namespace, r.key.name): r.revision for r in then} == expected
        replayed = dict(expected)
        for event in store.since("things", revision):
            place = (event.record.key.namespace, event.record.key.name)
            assert event.revision > revision
            if event.deleted:
                assert replayed.pop(place) == (event.previous.revision if event.previous else 0)
            else:
                replayed[place] = event.revision
        assert replayed == states[newest]


@settings(max_examples=examples(60), deadline=None)
@given(STEPS)
def test_every_state_in_the_window_can_be_listed_and_replayed(
    steps: list[tuple[str, object, str]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(play(steps, Path(directory) / "db"))
