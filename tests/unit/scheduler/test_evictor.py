"""Victims end in an order, and by uids, that no crash and no namesake turns into harm."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.drawn import add, draw, draw_gang, pod
from tests.support.waiting import eventually

from lockstep.api.gang import Gang
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.kube.errors import ApiError, Conflict, NotFound
from lockstep.scheduler import evictor as module
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.decisions import Eviction
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.nominations import Nomination
from lockstep.scheduler.evictor import Evictor

DOWN = ApiError(503, "ServiceUnavailable", "down")
VIP = WorkloadKey("Pod", "default", "vip")
LOW = WorkloadKey("Gang", "default", "low")


class Server:
    """Keeps what is asked of it; the first of it is answered with *failures*, in turn."""

    def __init__(self, *failures: ApiError | None) -> None:
        self.failures = list(failures)
        self.calls: list[tuple[str, str, Any]] = []
        self.version = ""
        """What comes of a write."""

    async def patch(self, res: Resource[Any], name: str, body: Any, *_: Any, **__: Any) -> Gang:
        self._take(f"{res.kind} {name}", body)
        meta = ObjectMeta(name=name, namespace="default", resource_version=self.version)
        return Gang(metadata=meta)

    async def delete(self, res: Resource[Any], name: str, _: str, *, uid: str) -> None:
        self._take(f"delete {name}", uid)

    def _take(self, what: str, body: Any) -> None:
        failure = self.failures.pop(0) if self.failures else None
        self.calls.append((what, type(failure).__name__ if failure else "", body))
        if failure is not None:
            raise failure

    def event(self, *_: Any) -> None:
        """Nobody listens."""

    @property
    def order(self) -> list[str]:
        return [what for what, _, _ in self.calls]


def world() -> tuple[Cluster, Eviction]:
    """A gang of two on one node, whose place goes to a pod."""
    cluster = draw(Cluster(), "s/l: a:8")
    drawn = draw_gang("low: 2x4")
    add(cluster, drawn)
    for one in drawn.pods:
        cluster.set_pod(replace(one, spec=replace(one.spec, node_name="a")))
    cluster.set_pod(pod("vip", gpus=8))
    cluster.settle()
    member = cluster.pods["default", "vip"]
    nodes = {"vip": "a"}
    cluster.nominations.add(Nomination(VIP, nodes, {"vip": member.shape}, "default", {}))
    victims = tuple(cluster.pods["default", f"low-{i}"] for i in range(2))
    return cluster, Eviction(VIP, nodes, victims, "its place goes to pod vip")


async def carried_out(server: Server, cluster: Cluster, eviction: Eviction) -> None:
    async with asyncio.timeout(20):
        await Evictor(server, cluster, server).carry_out(eviction)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.001)


async def test_who_stands_and_who_goes_is_written_before_any_eviction():
    server, (cluster, eviction) = Server(), world()
    await carried_out(server, cluster, eviction)
    assert server.order[:2] == ["Pod vip", "Gang low"]
    uids = {f"low-{i}": cluster.pods["default", f"low-{i}"].uid for i in range(2)}
    assert server.calls[1][2]["status"] == {"preempted": uids}
    for name, uid in uids.items():
        assert server.order.index(f"Pod {name}") < server.order.index(f"delete {name}")
        told = {what: body for what, _, body in server.calls}
        assert told[f"Pod {name}"]["metadata"] == {"uid": uid}
        assert told[f"delete {name}"] == uid


@pytest.mark.parametrize("moot", [False, True])
async def test_the_former_holder_shows_the_place_until_it_is_moot(moot):
    server, (cluster, eviction) = Server(*[DOWN] * 5000), world()
    cluster.nominations.get(VIP).instead_of = (LOW,)
    cluster.touched.clear()
    eviction = dataclasses.replace(eviction, victims=(), instead_of=(LOW,))
    carrying = asyncio.create_task(carried_out(server, cluster, eviction))
    await eventually(lambda: server.calls)
    assert cluster.nominations.passes_on(LOW)
    assert not cluster.touched
    if moot:
        cluster.nominations.drop(VIP)
    else:
        server.failures.clear()
    await carrying
    assert not cluster.nominations.passes_on(LOW)
    assert cluster.touched == {LOW}


GONE = NotFound(404, "NotFound", "no such gang")
TAKEN = Conflict(409, "Conflict", "the uid is another")


@pytest.mark.parametrize(
    ("what", "failures", "ended"),
    [
        ("the place cannot be noted at first", [DOWN, None], 2),
        ("the gang cannot be told at first", [None, DOWN], 2),
        ("the gang is gone", [None, GONE], 2),
        ("a pod cannot be told at first", [None, None, DOWN], 2),
        ("a pod is gone", [None, None, GONE], 1),
        ("somebody wrote a pod at the same time", [None, None, TAKEN], 2),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_fails_is_tried_again_and_nothing_goes_before_it(what, failures, ended):
    server, (cluster, eviction) = Server(*failures), world()
    await carried_out(server, cluster, eviction)
    assert sum(what.startswith("delete") for what in server.order) == ended
    assert [w for w, failure, _ in server.calls if w == "Gang low" and failure != "ApiError"]


class Contested(Server):
    """Refuses the first write on an object, as somebody else has written it: that is seen next."""

    def __init__(self, cluster: Cluster, kind: str) -> None:
        super().__init__()
        self.cluster = cluster
        self.kind = kind
        self.evictor = Evictor(self, cluster, self)

    def _take(self, what: str, body: Any) -> None:
        contested = what == self.kind and what not in self.order
        self.failures = [TAKEN] if contested else []
        if contested:
            asyncio.get_running_loop().call_soon(self._show)
        super()._take(what, body)

    def _show(self) -> None:
        vip = pod("vip", gpus=8)
        self.cluster.set_pod(replace(vip, metadata=replace(vip.metadata, resource_version="7")))
        gang = self.cluster.workloads[LOW].gang
        metadata = replace(gang.metadata, resource_version="7")
        self.cluster.set_gang(replace(gang, metadata=metadata))
        self.evictor.note()


@pytest.mark.parametrize("kind", ["Pod vip", "Gang low"])
async def test_a_conflict_is_retried_when_the_newer_version_is_known(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "RETRY_SECONDS", 1e9)
    cluster, eviction = world()
    server = Contested(cluster, kind)
    async with asyncio.timeout(20):
        await server.evictor.carry_out(eviction)
    assert [what for what in server.order if what == kind] == [kind, kind]
    assert sum(what.startswith("delete") for what in server.order) == 2


async def test_a_new_pod_of_a_victims_name_is_left_alone():
    server, (cluster, eviction) = Server(None, None, TAKEN), world()
    cluster.pods["default", "low-0"].uid = "another"
    eviction = Eviction(VIP, eviction.nodes, eviction.victims[:1], eviction.message)
    eviction.victims[0].uid = "before"
    cluster.pods["default", "low-0"] = world()[0].pods["default", "low-0"]
    await carried_out(server, cluster, eviction)
    assert not [what for what in server.order if what.startswith("delete")]


def version_of(cluster: Cluster, version: str) -> None:
    """Let the cluster see a version of the gang."""
    gang = cluster.workloads[WorkloadKey("Gang", "default", "low")].gang
    cluster.set_gang(replace(gang, metadata=replace(gang.metadata, resource_version=version)))


async def test_an_overwritten_status_is_written_again_on_the_newer_one():
    server, (cluster, eviction) = Server(None, *[TAKEN] * 5000), world()
    cluster.pods["default", "vip"].version = 3
    version_of(cluster, "7")
    carrying = asyncio.create_task(carried_out(server, cluster, eviction))
    await eventually(lambda: len(server.calls) > 2)
    assert server.calls[0][2]["metadata"]["resourceVersion"] == "3"
    version_of(cluster, "8")
    server.version = "9"
    server.failures.clear()
    await carrying
    told = [body["metadata"] for what, _, body in server.calls if what == "Gang low"]
    assert (told[0], told[-1]) == ({"resourceVersion": "7"}, {"resourceVersion": "8"})
    known = cluster.workloads[WorkloadKey("Gang", "default", "low")].gang
    assert known.metadata.resource_version == "9", "the next write goes by what came of this one"


@pytest.mark.parametrize(("told", "ended"), [(False, 0), (True, 2)])
async def test_only_notified_gangs_end_for_a_place_given_up(told, ended):
    failures = [None, *([None] if told else []), *[DOWN] * 20]
    server, (cluster, eviction) = Server(*failures), world()
    carrying = asyncio.create_task(carried_out(server, cluster, eviction))
    await eventually(lambda: len(server.calls) > 4)
    cluster.nominations.drop(VIP)
    await carrying
    assert sum(what.startswith("delete") for what in server.order) == ended


async def test_a_new_leader_ends_the_rest_of_a_notified_gang():
    server, (cluster, eviction) = Server(), world()
    told = {member.name: member.uid for member in eviction.victims}
    gone, left = eviction.victims
    gang = cluster.workloads[left.workload].gang
    cluster.set_gang(replace(gang, status=replace(gang.status, preempted={**told, "new": "u"})))
    cluster.remove_pod(*gone.key)
    decider = Decider(cluster)
    decider.decide(0.0)
    begun = decider.preemptor.told()
    assert begun == [left] == decider.preemptor.leaving()
    evictor = Evictor(server, cluster, server)
    await evictor.finish(evictor.unknown(begun))
    assert server.order == [f"Pod {left.name}", f"delete {left.name}"]
    assert evictor.unknown(begun) == [], "nobody is ended twice"
