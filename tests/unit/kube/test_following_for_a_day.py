"""Following a collection for a day of trouble: the copy always ends as the server is.

The real client, informer and follower against a model of a server, in virtual time.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.faults import (
    Answer,
    Break,
    Close,
    Cut,
    Delay,
    Fault,
    Faults,
    FaultyTransport,
    Stall,
    Twice,
)
from tests.support.model_server import ModelServer
from tests.support.objects import History
from tests.support.virtual_time import run_virtually

from lockstep.api.core import CONFIG_MAPS, ConfigMap
from lockstep.kube.cache import Change, Key, key_of, meta_of
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.informer import Informer

DAY = 86_400.0
CALM = 600.0
"""Seconds after the last trouble within which all must be well: silence, then the longest waits."""
SETTLED = 60.0

FAULTS = st.one_of(
    st.sampled_from([Break.UNSENT, Break.UNANSWERED, Twice()]),
    st.builds(Answer, st.sampled_from([410, 429, 500, 503, 504])),
    st.builds(Delay, st.sampled_from([1.0, 29.0, 31.0])),
    st.builds(Cut, st.integers(0, 2_000)),
    st.builds(Close, st.integers(0, 2_000)),
    st.builds(Stall, st.integers(0, 2_000)),
)


@dataclass
class Copier:
    """A subscriber that believes what it is told, and checks that it makes sense."""

    objects: dict[Key, ConfigMap] = field(default_factory=dict)
    restored: bool = False
    """Whether versions may go back."""

    def take(self, change: Change[ConfigMap]) -> None:
        key = key_of(change.object)
        if change.new is None:
            assert key in self.objects
            del self.objects[key]
            return
        assert self.objects.get(key) is change.old
        if change.old is not None and not self.restored:
            old, new = meta_of(change.old), meta_of(change.new)
            assert int(new.resource_version) > int(old.resource_version)
        self.objects[key] = change.new


class World:
    """A server, an informer behind a transport that fails, and subscribers."""

    def __init__(self, *, streams: bool, seed: int) -> None:
        self.server = ModelServer(streams=streams)
        self.queue: deque[Fault] = deque()
        self.faults = Faults(lambda _number, _request: self.queue.popleft() if self.queue else None)
        self.client = Client(
            ClusterConfig(server="http://model"),
            transport=lambda _config, _credential: FaultyTransport(self.server, self.faults),
        )
        rng = random.Random(seed)  # noqa: S311  jitter, to be repeated exactly
        self.informer: Informer[ConfigMap] = Informer(self.client, CONFIG_MAPS, rng=rng)
        self.copies = [Copier()]
        self.informer.subscribe(self.copies[0].take)
        self.backup: History | None = None

    def subscribe(self) -> None:
        """Let somebody else subscribe, late."""
        copy = Copier(restored=self.copies[0].restored)
        self.copies.append(copy)
        self.informer.subscribe(copy.take)

    async def restore(self) -> None:
        """Put an older state back, as after the loss of the server's disk."""
        if self.backup is None:
            self.backup = self.server.saved()
            return
        for copy in self.copies:
            copy.restored = True
        self.queue.clear()
        self.server.restart(self.backup)
        # Versions are given out again; who has not looked before they are cannot know.
        await asyncio.sleep(SETTLED)

    def check(self) -> None:
        truth = {("s", name): as_seen(obj) for name, obj in self.server.history.objects.items()}
        assert {key_of(obj): as_seen(obj) for obj in self.informer} == truth
        for copy in self.copies:
            assert {key: as_seen(obj) for key, obj in copy.objects.items()} == truth
        assert self.server.watches <= 1


def as_seen(obj: ConfigMap) -> tuple[str, str, str]:
    return (obj.metadata.uid, obj.metadata.resource_version, obj.data["value"])


Step = Callable[[World], object]
NAMES = st.sampled_from("abcde")
STEPS: st.SearchStrategy[tuple[str, Step]] = st.one_of(
    st.builds(
        lambda name, value: (f"put {name}", lambda world: world.server.put(name, value)),
        NAMES,
        st.sampled_from(["red", "blue", "x" * 500]),
    ),
    st.builds(lambda name: (f"delete {name}", lambda world: world.server.delete(name)), NAMES),
    st.builds(
        lambda faults: (f"{faults}", lambda world: world.queue.extend(faults)),
        st.lists(FAULTS, min_size=1, max_size=4),
    ),
    st.sampled_from(
        [
            ("compact", lambda world: world.server.history.compact()),
            ("restart", lambda world: world.server.restart()),
            ("restore", lambda world: world.restore()),
            ("repeat", lambda world: setattr(world.server, "repeats", not world.server.repeats)),
            ("subscribe", lambda world: world.subscribe()),
        ]
    ),
)
WAITS = st.sampled_from([0.0, 0.0, 0.0, 0.3, 5.0, 61.0, 140.0, 500.0, 7_200.0])


async def live(world: World, steps: list[tuple[tuple[str, Step], float]], length: float) -> None:
    """Follow for *length* seconds, with *steps* at their times, and check where it ends."""
    loop = asyncio.get_running_loop()
    following = asyncio.create_task(world.informer.run())
    try:
        for (_, step), wait in steps:
            done = step(world)
            if asyncio.iscoroutine(done):
                await done
            await asyncio.sleep(wait)
        world.queue.clear()
        await asyncio.sleep(CALM)
        world.check()
        await asyncio.sleep(max(0.0, length - loop.time()))
        world.check()
        assert not following.done()
        # Nothing is left of all the streams that came and went.
        assert len(asyncio.all_tasks()) <= 3
        faults = sum(str(what).count("(") + 1 for (what, _), _ in steps)
        assert len(world.faults.requests) < loop.time() / 200 + 20 * faults + 20
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


DAYS = given(st.booleans(), st.integers(0, 99), st.lists(st.tuples(STEPS, WAITS), max_size=25))


def follow(streams: bool, seed: int, steps: list[tuple[tuple[str, Step], float]]) -> None:
    async def day() -> None:
        await live(World(streams=streams, seed=seed), steps, DAY)

    run_virtually(day())


@settings(max_examples=examples(40), deadline=None)
@DAYS
def test_a_day_of_trouble_ends_with_the_truth(
    streams: bool, seed: int, steps: list[tuple[tuple[str, Step], float]]
) -> None:
    follow(streams, seed, steps)


@pytest.mark.soak
@settings(max_examples=examples(150), deadline=None)
@DAYS
def test_many_days_of_trouble_end_with_the_truth(
    streams: bool, seed: int, steps: list[tuple[tuple[str, Step], float]]
) -> None:
    follow(streams, seed, steps)
