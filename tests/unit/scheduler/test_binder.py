"""Bindings that fail are taken back only once it is certain that they did not happen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.support.drawn import draw, places, pod
from tests.support.waiting import eventually

from lockstep.api.backoff import Backoff
from lockstep.api.core import Pod
from lockstep.kube.errors import ApiError, Conflict, Forbidden, NotFound, Unreachable
from lockstep.scheduler import binder as module
from lockstep.scheduler.binder import Binder
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.metrics import Metrics


class Server:
    """Answers bindings and reads with what the case says, in turn."""

    def __init__(
        self, bindings: Sequence[ApiError | None], reads: Sequence[Pod | ApiError] = ()
    ) -> None:
        self.bindings = list(bindings)
        self.reads = list(reads)
        self.bound: list[tuple[str, str, dict[str, str] | None]] = []

    async def bind(
        self, namespace: str, name: str, node: str, *, uid: str, annotations: Any = None
    ) -> None:
        answer = self.bindings.pop(0)
        if answer is not None:
            raise answer
        self.bound.append((name, node, annotations))

    async def get(self, res: Any, name: str, namespace: str) -> Pod:
        answer = self.reads.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


LOST_ANSWER = Unreachable("Reset", "connection reset")
GONE = NotFound(404, "NotFound", "no such pod")
DOWN = ApiError(503, "ServiceUnavailable", "down")
TAKEN = Conflict(409, "Conflict", "bound")

FREE = pod("p", gpus=2)
CASES = [
    # what is shown, answers to bindings, answers to reads, where the pod counts afterwards
    ("bound", [None], [], {"p": "a"}),
    ("pod gone", [GONE], [], {}),
    ("not allowed", [Forbidden(403, "Forbidden", "no")], [], {}),
    ("answer lost, and it was not bound", [LOST_ANSWER, None], [], {"p": "a"}),
    ("answer lost, and it was bound", [LOST_ANSWER, TAKEN], [pod("p", gpus=2, on="a")], {"p": "a"}),
    ("answer lost, server down for a while", [LOST_ANSWER, DOWN, None], [], {"p": "a"}),
    ("answer lost, and the pod is gone", [LOST_ANSWER, GONE], [], {}),
    ("bound elsewhere", [TAKEN], [pod("p", on="b")], {"p": "b"}),
    ("a conflict that passes", [TAKEN, None], [FREE], {"p": "a"}),
    ("a conflict that stays", [TAKEN] * 3, [FREE] * 3, {}),
    ("another pod of that name", [Conflict(409, "Conflict", "uid")], [pod("p", uid="new")], {}),
]


@pytest.mark.parametrize(("what", "answers", "reads", "expected"), CASES, ids=[c[0] for c in CASES])
async def test_outcome(what, answers, reads, expected, monkeypatch):
    monkeypatch.setattr(module, "BACKOFF", Backoff(initial=0.01))
    cluster = draw(Cluster(), "s/l: a:8\n s/m: b:4")
    cluster.set_pod(pod("p", gpus=2))
    (placement,) = Decider(cluster).decide(0.0).placements
    woken = asyncio.Event()
    server = Server(answers, reads)
    binder = Binder(server, cluster, Metrics(CollectorRegistry()), woken.set)
    running = asyncio.create_task(binder.run())
    try:
        binder.submit(placement)
        assert placement.workload in binder.busy
        await eventually(lambda: not binder.busy, 5.0)
        assert woken.is_set()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    found = places(cluster)
    if expected == {"p": "a"}:
        expected = {"p": placement.assignments[0].spot.node}
        if reads and reads != [FREE]:
            expected = {"p": "a"}
    assert found == expected
    if answers[-1] is None:
        assert server.bound == [("p", expected["p"], {"lockstep.dev/gpus": "0,1"})]


class Vanishing(Server):
    """Answers about a pod that is seen to go while the answer is on its way."""

    def __init__(self, cluster: Cluster, successor: Sequence[Pod]) -> None:
        super().__init__([TAKEN], [pod("p", gpus=2, on="a")])
        self.cluster, self.successor = cluster, successor

    async def get(self, res: Any, name: str, namespace: str) -> Pod:
        answer = await super().get(res, name, namespace)
        self.cluster.remove_pod(namespace, name)
        for one in self.successor:
            self.cluster.set_pod(one)
        return answer


@pytest.mark.parametrize("successor", [[], [pod("p", gpus=2, uid="new")]], ids=["none", "another"])
async def test_a_pod_that_goes_during_its_lookup_holds_nothing(successor: list[Pod]) -> None:
    cluster = draw(Cluster(), "s/l: a:8")
    cluster.set_pod(pod("p", gpus=2))
    (placement,) = Decider(cluster).decide(0.0).placements
    server = Vanishing(cluster, successor)
    binder = Binder(server, cluster, Metrics(CollectorRegistry()), lambda: None)
    running = asyncio.create_task(binder.run())
    try:
        binder.submit(placement)
        await eventually(lambda: not server.reads and not binder.busy)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert places(cluster) == {}
    assert [one.uid for one in cluster.pods.values()] == [one.metadata.uid for one in successor]


class Slow(Server):
    """Answers no binding before it is let go on."""

    def __init__(self) -> None:
        super().__init__([None, None])
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def bind(
        self, namespace: str, name: str, node: str, *, uid: str, annotations: Any = None
    ) -> None:
        self.asked.set()
        await self.go.wait()
        await super().bind(namespace, name, node, uid=uid, annotations=annotations)


@pytest.mark.parametrize("answered", [True, False], ids=["they are answered", "they take long"])
async def test_other_work_waits_for_bindings_until_they_take_long(
    answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONCURRENCY", 1)
    monkeypatch.setattr(module, "MOMENT", 30.0 if answered else 0.01)
    cluster = draw(Cluster(), "s/l: a:8")
    for name in ("p", "q"):
        cluster.set_pod(pod(name, gpus=2))
    server = Slow()
    binder = Binder(server, cluster, Metrics(CollectorRegistry()), lambda: None)
    await binder.lull()  # nothing is under way
    for placement in Decider(cluster).decide(0.0).placements:
        binder.submit(placement)
    running = asyncio.create_task(binder.run())
    waiting = asyncio.create_task(binder.lull())
    try:
        await server.asked.wait()
        assert not waiting.done()
        if answered:
            server.go.set()
        await waiting
        assert bool(server.bound) is answered
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
