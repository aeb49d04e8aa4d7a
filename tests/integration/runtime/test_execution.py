"""Actions against real servers, and against one that fails on command."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.apiserver import ApiServer
from tests.support.fake_server import FakeServer, Fault

from lockstep.api.core import CONFIG_MAPS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import ApiError, Conflict, NotFound
from lockstep.runtime.actions import Action, Apply, Change, Create, Delete
from lockstep.runtime.execution import execute, execute_all
from lockstep.runtime.refusals import Refusal

SPACE = "default"
STRANGER = "00000000-0000-0000-0000-000000000000"


@pytest_asyncio.fixture
async def client(any_server: ApiServer) -> AsyncIterator[Client]:
    """A client of each server in turn."""
    async with Client(ClusterConfig.load(any_server.kubeconfig)) as made:
        yield made


def create(name: str, owner: str = "") -> Create:
    """Return the creation of a ConfigMap, controlled by the object with the uid *owner*."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    owners = [{**reference, "controller": True}] if owner else []
    return Create(CONFIG_MAPS, {"metadata": {"name": name, "ownerReferences": owners}})


async def test_each_action_may_be_sent_twice(client: Client) -> None:
    owner = await client.create(CONFIG_MAPS, {"metadata": {"name": "owner"}}, SPACE)
    uid = owner.metadata.uid
    for _ in range(2):
        assert await execute(client, create("one", uid), SPACE, owner=uid) is None
    there = await client.get(CONFIG_MAPS, "one", SPACE)
    filled = {"metadata": {"name": "one"}, "data": {"k": "w"}}
    for _ in range(2):
        assert await execute(client, Apply(CONFIG_MAPS, "one", filled, "test"), SPACE) is None
    gone = Delete.of(CONFIG_MAPS, there.metadata)
    for _ in range(2):
        assert await execute(client, gone) is None


async def test_an_object_of_another_owner_is_a_refusal(client: Client) -> None:
    await execute(client, create("one"), SPACE)
    refusal = await execute(client, create("one", STRANGER), SPACE, owner=STRANGER)
    assert str(refusal) == "ConfigMap one exists already and belongs to something else"


async def test_an_object_of_another_owner_is_not_overwritten(client: Client) -> None:
    await execute(client, create("one"), SPACE)
    body = {"metadata": {"name": "one"}, "data": {"k": "ours"}}
    for owner, kept in ((STRANGER, {}), ("", {"k": "ours"})):
        await execute(client, Create(CONFIG_MAPS, body, overwrite=True), SPACE, owner=owner)
        assert ((await client.get(CONFIG_MAPS, "one", SPACE)).data or {}) == kept


async def test_an_old_view_is_looked_at_again(client: Client) -> None:
    await execute(client, create("one"), SPACE)
    old = (await client.get(CONFIG_MAPS, "one", SPACE)).metadata
    await client.patch(CONFIG_MAPS, "one", {"data": {"k": "other"}}, SPACE)
    with pytest.raises(Conflict):
        await execute(client, Change.of(CONFIG_MAPS, old, {"data": {"k": "v"}}))
    with pytest.raises(Conflict):
        await execute(client, Delete(CONFIG_MAPS, "one", STRANGER, SPACE))
    with pytest.raises(NotFound):
        await execute(client, Change(CONFIG_MAPS, "none", {"data": {"k": "v"}}, SPACE))


@pytest.mark.parametrize(
    ("action", "status"),
    [
        (Create(CONFIG_MAPS, {"metadata": {"name": "Not A Name"}}), 422),
        (Create(CONFIG_MAPS, {"metadata": {"name": "one"}}, "no-such-namespace"), 404),
        (Create(CONFIG_MAPS, {"metadata": {"name": "one"}, "data": ["list"]}), 400),
    ],
    ids=["invalid", "no namespace", "wrong type"],
)
async def test_what_the_server_refuses_is_returned(
    client: Client, action: Action, status: int
) -> None:
    refusal = await execute(client, action, SPACE)
    assert isinstance(refusal, Refusal)
    assert refusal.error.status == status
    assert refusal.error.message in str(refusal)


async def test_nothing_follows_a_refused_action(client: Client) -> None:
    wrong = Create(CONFIG_MAPS, {"metadata": {"name": "Not A Name"}})
    actions = [create("first"), wrong, Delete(CONFIG_MAPS, "first", STRANGER)]
    found = await execute_all(actions, lambda one: execute(client, one, SPACE))
    assert [one.action for one in found] == [wrong]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_bad_moment_is_not_a_refusal(status: int) -> None:
    server = await FakeServer().start()
    try:
        async with server.client() as client:
            server.faults.append(Fault("status", status=status, reason="no"))
            # Deleting is repeatable: the client itself sends it again.
            assert await execute(client, Delete(CONFIG_MAPS, "x", "u"), SPACE) is None
            server.faults.extend(Fault("status", status=status) for _ in range(20))
            with pytest.raises(ApiError) as told:
                await execute(client, create("one"), SPACE)
            assert told.value.status == status
    finally:
        await server.close()


async def test_a_namespace_that_ends_takes_no_more() -> None:
    server = await FakeServer().start()
    try:
        async with server.client() as client:
            causes = ({"reason": "NamespaceTerminating"},)
            server.faults.append(Fault("status", status=403, reason="Forbidden", causes=causes))
            assert await execute(client, create("one"), SPACE) is None
    finally:
        await server.close()
