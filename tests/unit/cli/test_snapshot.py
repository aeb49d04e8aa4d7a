"""What a snapshot holds, and what becomes of it where not everything may be listed."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.api.core import BUDGETS, NODES, Node, PodDisruptionBudget
from lockstep.api.gang import GANGS, Gang, GangStatus
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.cli.snapshot import object_of, take
from lockstep.compat.hypernodes import HYPERNODES
from lockstep.kube.errors import Forbidden, NotFound

META = ObjectMeta(name="one", namespace="default")


@dataclass
class Server:
    """Lists what there is, and refuses what the user may not list or what it does not know."""

    there: dict[Resource[Any], list[Any]]
    refuses: dict[Resource[Any], Exception] = field(default_factory=dict)

    async def list(self, res: Resource[Any]) -> SimpleNamespace:
        if res in self.refuses:
            raise self.refuses[res]
        return SimpleNamespace(items=self.there.get(res, []))


async def kinds(server: Server) -> list[str]:
    session: Any = SimpleNamespace(client=server)
    return [obj["kind"] for obj in await take(session)]


THERE = {NODES: [Node(metadata=META)], BUDGETS: [PodDisruptionBudget(metadata=META)]}


async def test_budgets_are_taken_along():
    assert await kinds(Server(THERE)) == ["Node", "PodDisruptionBudget"]


@pytest.mark.parametrize(
    ("refused", "error", "told"),
    [
        (HYPERNODES, Forbidden(403, "Forbidden", "no"), "you may not list hypernodes"),
        (BUDGETS, Forbidden(403, "Forbidden", "no"), "you may not list poddisruptionbudgets"),
        (HYPERNODES, NotFound(404, "NotFound", "no such kind"), ""),
    ],
)
async def test_what_may_not_be_listed_is_left_out_and_said(
    refused: Resource[Any], error: Exception, told: str, capsys: pytest.CaptureFixture[str]
):
    assert "Node" in await kinds(Server(THERE, {refused: error}))
    said = capsys.readouterr().err
    assert told in said
    assert bool(said) == bool(told)


async def test_without_nodes_there_is_no_snapshot():
    with pytest.raises(Forbidden):
        await kinds(Server(THERE, {NODES: Forbidden(403, "Forbidden", "no")}))


def test_a_gang_that_waits_says_for_how_long():
    gang = Gang(metadata=META, status=GangStatus(waiting_since="1970-01-01T00:10:00Z"))
    annotations = object_of(GANGS, gang, 1000.0)["metadata"]["annotations"]
    assert annotations["lockstep.dev/waited"] == "400"


def test_what_is_there_does_not_arrive():
    stated = {"lockstep.dev/arrival": "3600", "lockstep.dev/runtime": "60"}
    gang = Gang(metadata=ObjectMeta(name="one", namespace="default", annotations=stated))
    assert object_of(GANGS, gang, 0.0)["metadata"]["annotations"] == {"lockstep.dev/runtime": "60"}
