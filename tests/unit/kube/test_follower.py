"""Following a collection through everything that a server and a network can do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.objects import History, config_map

from lockstep.api.core import ConfigMap
from lockstep.kube.cache import Change, key_of
from lockstep.kube.codec import WatchEvent
from lockstep.kube.errors import (
    ApiError,
    BadRequest,
    Cause,
    Gone,
    Invalid,
    ServerFailed,
    Unreachable,
)
from lockstep.kube.follower import Follower, Plan, Step, newer

BROKEN = Unreachable("Connection", "broken")
GONE = Gone(410, "Expired", "too old")
REFUSED = Invalid(422, "Invalid", "sendInitialEvents is forbidden")

NAMES = st.sampled_from("abc")
MUTATIONS = st.one_of(
    st.tuples(st.just("put"), NAMES, st.sampled_from(["red", "blue"])),
    st.tuples(st.just("delete"), NAMES, st.just("")),
    st.tuples(st.just("compact"), NAMES, st.just("")),
)
CONNECTIONS = st.fixed_dictionaries(
    {
        "before": st.lists(MUTATIONS, max_size=4),
        "during": st.lists(MUTATIONS, max_size=4),
        "cut": st.integers(0, 12),
        "repeat": st.booleans(),
        "error": st.sampled_from([None, BROKEN, ServerFailed(500, "", "failed")]),
        "beside": st.none() | st.tuples(st.sampled_from(["before", "after"]), st.integers(0, 6)),
    }
)


Beside = tuple[str, int] | None
"""A list read beside a request: before or after what happens meanwhile, taken at which event."""


class World:
    """A server and a follower, and a subscriber that copies what it is told."""

    def __init__(self, *, streams: bool) -> None:
        self.server = History()
        self.version = 0
        self.lists: dict[str, tuple[list[ConfigMap], str]] = {}
        self.follower: Follower[ConfigMap] = Follower()
        self.streams = streams
        self.copy: dict[tuple[str, str], ConfigMap] = {}

    def mutate(self, mutations: list[tuple[str, str, str]]) -> None:
        for kind, name, value in mutations:
            if kind == "put":
                self.server.put(name, value)
            elif kind == "delete":
                self.server.delete(name)
            else:
                self.server.compact()

    def take(self, changes: list[Change[ConfigMap]]) -> None:
        version = int(self.follower.resource_version or 0)
        assert version >= self.version, "time runs backwards"
        self.version = version
        for change in changes:
            key = key_of(change.object)
            if change.new is None:
                del self.copy[key]
            else:
                assert self.copy.get(key) is change.old
                self.copy[key] = change.new

    def pass_by(self, during: list[tuple[str, str, str]]) -> None:
        """Let things happen; lists are read before and after."""
        self.lists["before"] = self.listed()
        self.mutate(during)
        self.lists["after"] = self.listed()

    def listed(self) -> tuple[list[ConfigMap], str]:
        return list(self.server.objects.values()), str(self.server.version)

    def catch_up(self, beside: Beside, number: int) -> None:
        if beside is not None and beside[1] == number:
            self.take(self.follower.caught_up(*self.lists[beside[0]]))

    def connect(
        self,
        during: list[tuple[str, str, str]],
        cut: int | None,
        repeat: bool,
        error: ApiError | None,
        beside: Beside = None,
    ) -> Step:
        """Make the planned request; after *cut* events the connection ends with *error*."""
        plan = self.follower.plan()
        if plan.step is Step.LIST:
            objects, version = self.listed()
            self.pass_by(during)
            self.catch_up(beside, 0)
            if cut == 0 and error is not None:
                self.follower.ended(error, 0.0)
            else:
                self.take(self.follower.listed(objects, version))
                self.follower.ended(None, 0.0)
            return plan.step
        assert plan.resource_version, "a watch without a version bypasses the server's cache"
        if plan.step is Step.STREAM and not self.streams:
            self.follower.ended(REFUSED, 0.0)
            return plan.step
        start = self.server.version
        if plan.step is Step.STREAM:
            events: list[WatchEvent[ConfigMap]] | None = self.server.initial()
            self.pass_by(during)
            assert events is not None
            events += [e for e in self.server.events if int(e.resource_version) > start]
        else:
            self.pass_by(during)
            events = self.server.after(plan.resource_version)
        if events is None:
            self.follower.ended(GONE, 0.0)
            return plan.step
        for number, event in enumerate(events[:cut]):
            self.catch_up(beside, number)
            for _ in range(2 if repeat and not event.synced else 1):
                self.take(self.follower.event(event))
        self.follower.ended(error, 0.0)
        return plan.step


@settings(max_examples=examples(300), deadline=None)
@given(st.booleans(), st.lists(CONNECTIONS, max_size=8))
def test_the_cache_ends_equal_to_the_server_after_anything(
    streams: bool, connections: list[dict[str, Any]]
) -> None:
    world = World(streams=streams)
    for one in connections:
        world.mutate(one.pop("before"))
        world.connect(**one)
        cached = {key_of(obj): obj for obj in world.follower.cache}
        assert cached == world.copy
    for _ in range(4):
        world.connect([], None, False, None)
    assert world.follower.synced
    assert {key_of(o): o for o in world.follower.cache} == {
        key_of(o): o for o in world.server.objects.values()
    }


def synced(follower: Follower[ConfigMap], version: str = "5") -> None:
    follower.plan()
    follower.event(WatchEvent("BOOKMARK", None, version, synced=True))


def test_a_lost_connection_goes_on_where_it_was() -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower)
    follower.event(WatchEvent("BOOKMARK", None, "9"))
    follower.ended(BROKEN, 0.1)
    plan = follower.plan()
    assert (plan.step, plan.resource_version) == (Step.WATCH, "9")


@pytest.mark.parametrize(
    ("error", "then"),
    [
        (REFUSED, Step.LIST),
        (BadRequest(400, "BadRequest", "what?"), Step.LIST),
        (Unreachable("Silence", "nothing came"), Step.LIST),
        (None, Step.LIST),
        (BROKEN, Step.STREAM),
        (ServerFailed(503, "", "busy"), Step.STREAM),
        (GONE, Step.STREAM),
    ],
)
def test_a_server_without_streaming_lists_is_asked_for_pages(
    error: ApiError | None, then: Step
) -> None:
    follower: Follower[ConfigMap] = Follower()
    assert follower.plan().step is Step.STREAM
    follower.event(WatchEvent("ADDED", config_map("a"), "1"))
    follower.ended(error, 0.1)
    assert follower.plan().step is then
    assert not follower.synced


def test_after_410_time_does_not_run_backwards() -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower, "50")
    follower.ended(None, 2.0)
    assert follower.plan().step is Step.WATCH
    follower.ended(GONE, 0.1)
    plan = follower.plan()
    assert (plan.step, plan.resource_version) == (Step.STREAM, "50")


def test_a_server_that_lost_versions_is_followed_from_any() -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower, "50")
    follower.ended(None, 2.0)
    follower.plan()
    too_large = ServerFailed(
        504, "Timeout", "Too large resource version", (Cause(reason="ResourceVersionTooLarge"),)
    )
    follower.ended(too_large, 0.1)
    assert follower.plan().resource_version == "0"
    follower.event(WatchEvent("ADDED", config_map("a", version=3), "3"))
    changes = follower.event(WatchEvent("BOOKMARK", None, "4", synced=True))
    assert [change.object.metadata.name for change in changes] == ["a"]
    assert follower.resource_version == "4"


@pytest.mark.parametrize(
    ("progress", "error", "lasted", "healthy", "wait"),
    [
        (False, BROKEN, 0.1, False, True),
        (False, None, 0.1, False, True),
        (False, None, 5.0, True, False),
        (False, BROKEN, 5.0, False, True),
        (False, BROKEN, 60.0, True, True),
        (True, BROKEN, 0.1, True, True),
        (True, None, 0.1, True, False),
        (True, GONE, 0.1, True, True),
    ],
)
def test_every_failure_is_followed_by_a_wait(
    progress: bool, error: ApiError | None, lasted: float, healthy: bool, wait: bool
) -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower)
    if progress:
        follower.event(WatchEvent("ADDED", config_map("a", version=6), "6"))
    ending = follower.ended(error, lasted)
    assert (ending.healthy, ending.wait) == (healthy, wait)


def test_a_working_list_is_followed_immediately_by_a_watch() -> None:
    follower: Follower[ConfigMap] = Follower()
    follower.plan()
    follower.ended(REFUSED, 0.1)
    assert follower.plan().step is Step.LIST
    follower.listed([config_map("a")], "7")
    assert not follower.ended(None, 0.1).wait
    plan = follower.plan()
    assert (plan.step, plan.resource_version) == (Step.WATCH, "7")


def test_what_is_transformed_is_what_is_kept_and_told() -> None:
    small = config_map("a", version=6)
    follower: Follower[ConfigMap] = Follower(transform=lambda _: small)
    synced(follower)
    [change] = follower.event(WatchEvent("ADDED", config_map("a", value="big", version=6), "6"))
    assert change.new is small
    assert list(follower.cache) == [small]


def test_what_is_sent_once_more_does_not_turn_time_back() -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower)
    old, new = config_map("a", version=6, value="red"), config_map("a", version=7, value="blue")
    for event in (WatchEvent("ADDED", old, "6"), WatchEvent("MODIFIED", new, "7")):
        assert len(follower.event(event)) == 1
    assert follower.event(WatchEvent("ADDED", old, "6")) == []
    follower.event(WatchEvent("DELETED", config_map("a", version=8), "8"))
    assert follower.event(WatchEvent("MODIFIED", new, "7")) == []
    assert len(follower.cache) == 0


def test_what_cannot_be_read_advances_the_version_only() -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower)
    assert follower.event(WatchEvent("ADDED", None, "6")) == []
    assert follower.resource_version == "6"


@pytest.mark.parametrize(
    ("version", "than", "expected"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("9", "9", False),
        ("x", "9", True),
        ("x", "x", False),
        ("", "9", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, than: str, expected: bool) -> None:
    assert newer(version, than) is expected


def test_a_paged_reader_lists_then_watches_and_relists_when_needed() -> None:
    follower: Follower[ConfigMap] = Follower()
    follower.read_in_pages()
    assert follower.plan() == Plan(Step.LIST, "")
    follower.listed([], "7")
    follower.ended(None, 0.0)
    assert follower.plan() == Plan(Step.WATCH, "7")
    follower.ended(GONE, 0.0)
    assert follower.plan() == Plan(Step.LIST, "")


@pytest.mark.parametrize("step", [Step.LIST, Step.STREAM])
def test_requests_from_before_a_newer_list_no_longer_count(step: Step) -> None:
    follower: Follower[ConfigMap] = Follower()
    if step is Step.LIST:
        follower.read_in_pages()
    assert follower.plan().step is step
    old, new = config_map("a", version=5, value="red"), config_map("b", version=7)
    if step is Step.STREAM:
        follower.event(WatchEvent("ADDED", old, "5"))
    assert [change.new for change in follower.caught_up([new], "7")] == [new]
    if step is Step.LIST:
        assert follower.listed([old], "6") == []
    else:
        assert follower.event(WatchEvent("BOOKMARK", None, "6", synced=True)) == []
    assert list(follower.cache) == [new]
    assert follower.resource_version == "7"


def test_a_list_that_is_behind_the_watch_brings_nothing_back() -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower)
    gone = config_map("a", version=6)
    follower.event(WatchEvent("ADDED", gone, "6"))
    follower.event(WatchEvent("DELETED", config_map("a", version=7), "7"))
    assert follower.caught_up([gone], "6") == []
    assert list(follower.cache) == []


def test_watch_events_from_before_a_newer_list_no_longer_count() -> None:
    follower: Follower[ConfigMap] = Follower()
    synced(follower)
    old, new = config_map("a", version=6, value="red"), config_map("a", version=8, value="blue")
    follower.event(WatchEvent("ADDED", config_map("b", version=6), "6"))
    assert len(follower.caught_up([new], "8")) == 2, "one went and one came"
    assert follower.event(WatchEvent("MODIFIED", old, "7")) == []
    assert follower.event(WatchEvent("DELETED", config_map("b", version=8), "8")) == []
    assert list(follower.cache) == [new]
