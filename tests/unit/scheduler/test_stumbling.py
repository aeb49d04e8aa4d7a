"""A defect in the way of one workload or one object does not stop the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from tests.support.drawn import add, draw, draw_gang, gang, node, places, pod

from lockstep.api.core import NODES
from lockstep.api.gang import GANGS
from lockstep.api.resource import Resource
from lockstep.kube.cache import Change
from lockstep.scheduler.core.cycle import decider
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement.search import Search
from lockstep.scheduler.core.resources.device_columns import Taken
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.event_handlers import EventHandlers
from lockstep.scheduler.hypernode_source import HyperNodeSource

BAD = WorkloadKey("Gang", "default", "bad")


def crowd() -> Cluster:
    """Three gangs that fit, the second of which is to be stumbled over."""
    cluster = draw(Cluster(), "s/l: a:8 b:8 c:8")
    for name in ("a", "bad", "c"):
        add(cluster, draw_gang(f"{name}: 2x4"))
    return cluster


def in_the_search(patch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    place = Search.place

    def stumble(search: Search, workload: WorkloadKey) -> Any:
        if workload == BAD:
            raise ZeroDivisionError("no\nnodes")
        return place(search, workload)

    patch.setattr(Search, "place", stumble)


def in_the_order(patch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    priority = cluster.priorities.of

    def stumble(workload: Workload) -> int:
        if workload.key == BAD:
            raise OverflowError("priority")
        return priority(workload)

    patch.setattr(cluster.priorities, "of", stumble)


def while_it_is_counted(patch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    hold, calls = cluster.table.hold_devices, []

    def stumble(row: int, taken: Taken) -> None:
        calls.append(row)
        if len(calls) == 2:  # the second gang's nodes are charged by then, its devices not held
            raise IndexError(row)
        hold(row, taken)

    patch.setattr(cluster.table, "hold_devices", stumble)


def after_it_was_counted(patch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    update = decider.PendingQueue.update

    def stumble(line: decider.PendingQueue, key: WorkloadKey) -> bool:
        if key == BAD and cluster.pods["default", "bad-0"].node:
            raise KeyError(key)
        return update(line, key)

    patch.setattr(decider.PendingQueue, "update", stumble)


@pytest.mark.parametrize(
    "stumbles", [in_the_search, in_the_order, while_it_is_counted, after_it_was_counted]
)
def test_the_others_are_placed_and_nothing_of_it_stays_assumed(
    stumbles: Callable[[pytest.MonkeyPatch, Cluster], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = crowd()
    decider = Decider(cluster)
    with monkeypatch.context() as patch:
        stumbles(patch, cluster)
        result = decider.decide(0.0)
        assert not decider.decide(1.0).errors, "tried again though nothing changed"
    assert list(result.errors) == [BAD]
    assert [p.workload.name for p in result.placements] == ["a", "c"]
    assert BAD in result.touched
    assert decider.broken[BAD].reason == "InternalError"
    assert type(result.errors[BAD]).__name__ in decider.broken[BAD].message
    assert places(cluster, "bad") == {}
    held = [m for m in cluster.pods.values() if m.node]
    assert int(cluster.table.used[3].sum()) == sum(m.shape.gpus for m in held) == 16
    free = cluster.table.allocatable - cluster.table.used
    assert np.array_equal(cluster.table.free, free)


def test_it_is_tried_again_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = crowd()
    decider = Decider(cluster)
    with monkeypatch.context() as patch:
        in_the_search(patch, cluster)
        decider.decide(0.0)
        cluster.remove_pod("default", "a-0")
        assert not decider.decide(1.0).errors, "something freed is no change of it"
    cluster.set_gang(draw_gang("bad: 2x4").gang)
    decider.decide(2.0)
    assert len(places(cluster, "bad")) == 2
    assert not decider.broken


class Informers:
    """Stands in for the manager: hands out informers that say what they are told to."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[Change[Any]], None]] = {}

    def informer(self, res: Resource[Any], **_: Any) -> Any:
        manager = self

        class Informer:
            def subscribe(self, handler: Callable[[Change[Any]], None]) -> Callable[[], None]:
                manager.handlers[res.plural] = handler
                return manager.handlers.clear

        return Informer()


def door(cluster: Cluster) -> HyperNodeSource:
    return HyperNodeSource(cast(Any, None), cluster, lambda: None)


def broken_node(name: str) -> Any:
    return node(name, extended={"example.com/fpga": "many"})


def test_an_unreadable_node_is_reported_and_not_used() -> None:
    informers, cluster = Informers(), Cluster()
    reported: list[tuple[str, str]] = []
    EventHandlers(cast(Any, informers)).attach(
        cluster,
        door(cluster),
        lambda: None,
        lambda obj, error: reported.append((obj.metadata.name, str(error))),
    )
    tell = informers.handlers[NODES.plural]
    tell(Change(None, node("was-well")))
    for one in (broken_node("new"), broken_node("was-well"), node("well")):
        tell(Change(None, one))
    assert [name for name, _ in reported] == ["new", "was-well"]
    assert all("many" in words for _, words in reported)
    assert list(cluster.table.rows) == ["well"]


def test_a_gang_that_cannot_be_read_stays_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    informers, cluster = Informers(), draw(Cluster(), "s/l: a:8")
    reported: list[Any] = []
    EventHandlers(cast(Any, informers)).attach(
        cluster, door(cluster), lambda: None, lambda obj, error: reported.append(obj)
    )
    tell = informers.handlers[GANGS.plural]
    tell(Change(None, gang("g", minMember=1)))
    odd = gang("g", groups=[{"name": "w", "min": 1, "selector": {}}])
    with monkeypatch.context() as patch:
        patch.setattr("lockstep.scheduler.core.model.pod_groups.from_selector", lambda _: 1 / 0)
        tell(Change(None, odd))
    assert reported == [odd]
    cluster.set_pod(pod("g-0", gpus=8, gang="g"))
    Decider(cluster).decide(0.0)
    assert places(cluster) == {"g-0": "a"}
