"""The cache against a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.objects import config_map

from lockstep.api.core import ConfigMap
from lockstep.kube.cache import Cache, Change, key_of

NAMES = st.sampled_from(["a", "b", "c"])
OBJECTS = st.builds(
    config_map,
    NAMES,
    version=st.integers(1, 5),
    uid=st.sampled_from(["u1", "u2"]),
    value=st.sampled_from(["", "red", "blue"]),
)
WRITES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), OBJECTS),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("replace"), st.lists(OBJECTS, unique_by=key_of)),
    )
)


def colours(obj: ConfigMap) -> list[str]:
    return list(obj.metadata.labels.values())


def apply(changes: list[Change[ConfigMap]], seen: dict[tuple[str, str], ConfigMap]) -> None:
    """Do what a subscriber that keeps its own copy does, and hold each change against it."""
    for change in changes:
        key = key_of(change.object)
        assert seen.get(key) is change.old or change.new is None
        if change.new is None:
            assert seen.pop(key).metadata.uid == change.object.metadata.uid
        else:
            assert change.old is None or change.old.metadata.uid == change.new.metadata.uid
            seen[key] = change.new


@given(WRITES)
def test_a_subscriber_that_applies_changes_equals_the_cache(
    writes: list[tuple[str, object]],
) -> None:
    cache: Cache[ConfigMap] = Cache({"colour": colours})
    seen: dict[tuple[str, str], ConfigMap] = {}
    for kind, argument in writes:
        if kind == "put":
            assert isinstance(argument, ConfigMap)
            apply(cache.put(argument), seen)
        elif kind == "remove":
            apply(cache.remove(("s", str(argument))), seen)
        else:
            assert isinstance(argument, list)
            apply(cache.replace(argument), seen)
            assert len(cache) == len(argument)
        assert {key_of(obj): obj for obj in cache} == seen
        for colour in ("red", "blue"):
            expected = [obj for obj in seen.values() if colour in colours(obj)]
            assert sorted(map(key_of, cache.by_index("colour", colour))) == sorted(
                map(key_of, expected)
            )
            assert all(obj is seen[key_of(obj)] for obj in cache.by_index("colour", colour))


def test_the_same_version_of_an_object_is_no_change() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.put(config_map("a", version=3))
    assert cache.put(config_map("a", version=3)) == []


def test_a_recreated_object_is_one_deleted_and_one_added() -> None:
    cache: Cache[ConfigMap] = Cache()
    old, new = config_map("a", uid="1"), config_map("a", uid="2", version=9)
    cache.put(old)
    assert cache.put(new) == [Change(old, None), Change(None, new)]


def test_the_end_of_an_earlier_incarnation_changes_nothing() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.put(config_map("a", uid="2"))
    assert cache.remove(("s", "a"), config_map("a", uid="1")) == []
    assert len(cache) == 1


def test_a_replacement_reports_what_went_before_what_came() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.put(config_map("a"))
    changes = cache.replace([config_map("b")])
    assert [change.new is None for change in changes] == [True, False]


def test_an_index_that_is_added_later_holds_what_is_there() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.put(config_map("a", value="red"))
    cache.add_index("colour", colours)
    assert [obj.metadata.name for obj in cache.by_index("colour", "red")] == ["a"]
