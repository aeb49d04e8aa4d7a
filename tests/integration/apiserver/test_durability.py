"""kill -9 at any time loses no acknowledged write, doubles none, and leaves no gap in a watch."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest
from tests.support.apiserver import ApiServer
from tests.support.storm import SPACE, Told, Watcher, Writer
from tests.support.waiting import eventually

from lockstep.api.core import CONFIG_MAPS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig

WRITERS, WATCHERS = 8, 3
PATIENCE = 2.0
"""Seconds for which a writer tries again before it goes on to something else."""


async def storm(server: ApiServer, writes: int, kills: int) -> None:
    """Let writers get *writes* acknowledged, with *kills* kills in between, and check it all."""
    dice = random.Random(kills)  # noqa: S311  a seeded choice of cases
    config = ClusterConfig.load(server.kubeconfig)
    async with Client(config, deadline=PATIENCE) as client:
        start = (await client.list(CONFIG_MAPS, SPACE)).resource_version
        writers = [Writer(client, f"w{i}", random.Random(i)) for i in range(WRITERS)]  # noqa: S311
        watchers = [Watcher(client, start) for _ in range(WATCHERS)]
        writing = [asyncio.create_task(writer.run()) for writer in writers]
        watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
        moments = sorted(dice.randrange(writes) for _ in range(kills))
        try:
            for moment in (*moments, writes):
                await eventually(
                    lambda moment=moment: acknowledged(writers, writing) >= moment, 60, "the writes"
                )
                if moment < writes:
                    server.kill()
                    await asyncio.to_thread(server.start)
        finally:
            await end(writing)
        try:
            await check(client, writers, watchers, watching)
        finally:
            await end(watching)


def acknowledged(writers: Sequence[Writer], tasks: Sequence[asyncio.Task[None]]) -> int:
    for task in tasks:
        if task.done():
            task.result()
    return sum(len(writer.acknowledged) for writer in writers)


async def end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def check(
    client: Client,
    writers: Sequence[Writer],
    watchers: Sequence[Watcher],
    watching: Sequence[asyncio.Task[None]],
) -> None:
    """What was acknowledged is there, with its very content and version, and was told once."""
    last = await client.create(
        CONFIG_MAPS, {"metadata": {"name": "last", "namespace": SPACE}, "data": {"value": ""}}
    )
    newest = int(last.metadata.resource_version)
    for watcher in watchers:
        await eventually(
            lambda watcher=watcher: watcher.version == str(newest), what="the last event"
        )
    assert not any(task.done() for task in watching)
    stored: dict[str, Told] = {
        obj.metadata.name: (int(obj.metadata.resource_version), obj.data.get("value", ""))
        for obj in (await client.list(CONFIG_MAPS, SPACE)).items
    }
    known = {name for writer in writers for name, _ in writer.acknowledged}
    for writer in writers:
        for name, told in dict(writer.acknowledged).items():
            if name not in writer.uncertain:
                assert stored.get(name) == told, name
        for name, values in writer.uncertain.items():
            before = dict(writer.acknowledged).get(name)
            now = stored[name][1] if name in stored else None
            assert now in (*values, before and before[1]), name
            known.add(name)
    assert {name for name in stored if name.startswith("w")} <= known
    versions = [told[0] for w in writers for _, told in w.acknowledged if told]
    assert len(versions) == len(set(versions)), "a version was given twice"
    assert max(versions) < newest
    for writer in writers:
        own = [told[0] for _, told in writer.acknowledged if told]
        assert own == sorted(own)
    for watcher in watchers:
        told_versions = [told[0] for _, _, told in watcher.events]
        assert told_versions == sorted(set(told_versions)), "told twice, or out of order"
        assert set(versions) <= set(told_versions), "a gap"
        assert watcher.events == watchers[0].events
        there = watcher.replayed()
        assert there == {name: told for name, told in stored.items() if name in there}
        assert {n for n in stored if n.startswith("w")} <= set(there)


@pytest.mark.parametrize(
    ("writes", "kills"),
    [
        (1_000, 5),
        pytest.param(10_000, 40, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_a_storm_of_writes_survives_kill_9(
    server: ApiServer, writes: int, kills: int
) -> None:
    await storm(server, writes, kills)
