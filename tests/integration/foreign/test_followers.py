"""Caches of other people's clients stay right through whatever becomes of the server."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.followers import FOLLOWERS, NAMESPACE, Cache
from tests.support.waiting import eventually_sync

pytestmark = [
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
NAMES = [f"c{i}" for i in range(12)]


@pytest.fixture(params=FOLLOWERS, ids=lambda one: one.__name__.lower())
def follower(request: pytest.FixtureRequest, server: ApiServer) -> Iterator[Any]:
    running = request.param(server)
    running.start()
    yield running
    # The end of the server ends streams that would wait for an event.
    server.kill()
    running.stop()


def dice(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  a seeded choice of changes


def change(server: ApiServer, chance: random.Random, count: int) -> None:
    """Create, change and delete config maps."""
    connection = server.connect()
    for number in range(count):
        name = chance.choice(NAMES)
        body = {"data": {"n": str(number), "r": str(chance.random())}}
        created = server.request(
            "POST", PATH, {"metadata": {"name": name}, **body}, connection=connection
        )
        if created.status == 409 and chance.random() < 0.4:
            assert server.request("DELETE", f"{PATH}/{name}", connection=connection).status == 200
        elif created.status == 409:
            patched = server.request(
                "PATCH",
                f"{PATH}/{name}",
                body,
                content_type="application/merge-patch+json",
                connection=connection,
            )
            assert patched.status == 200
        else:
            assert created.status == 201
    connection.close()


def truth(server: ApiServer) -> Cache:
    listed = server.request("GET", PATH).json["items"]
    return {one["metadata"]["name"]: one.get("data") or {} for one in listed}


def agrees(follower: Any, server: ApiServer) -> None:
    wanted = truth(server)
    eventually_sync(lambda: follower.cache() == wanted, 90.0, f"the cache is {wanted}")


def test_a_cache_is_right_after_many_changes(follower: Any, server: ApiServer) -> None:
    change(server, dice(1), 60)
    agrees(follower, server)


def test_a_cache_is_right_after_the_server_was_killed(follower: Any, server: ApiServer) -> None:
    chance = dice(2)
    for _ in range(2):
        change(server, chance, 20)
        server.kill()
        server.start()
        change(server, chance, 20)
    agrees(follower, server)
    assert follower.expired == 0, "what a follower had seen before the kill is gone on from"


def test_a_cache_is_right_after_an_older_state_was_restored(
    follower: Any, server: ApiServer
) -> None:
    chance = dice(3)
    change(server, chance, 20)
    server.stop()
    backup = server.data.with_name("backup")
    shutil.copytree(server.data, backup)
    server.start()
    change(server, chance, 60)
    agrees(follower, server)
    server.stop()
    for stored in server.data.glob("store.db*"):
        stored.unlink()
    for stored in backup.glob("store.db*"):
        shutil.copy(stored, server.data)
    server.start()
    change(server, chance, 3)
    agrees(follower, server)
    assert bool(follower.expired) == follower.resumes
