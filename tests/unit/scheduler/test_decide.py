"""Rounds of decisions: who is looked at, who is left alone, and half-placed gangs."""

import pytest
from tests.support.drawn import add, draw, draw_gang, gang, node, places, pod

from lockstep.api.core import PriorityClass
from lockstep.api.meta import ObjectMeta
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.timers import ROLLBACK
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.resources.device_allocation import Grant, Spot
from lockstep.scheduler.core.state.cluster import Cluster

TWO_LEAVES = "s1/l1: a1:8 a2:8\n s1/l2: b1:8 b2:8"
KEY = WorkloadKey("Gang", "default", "g")


def half_bound(drawing: str, *, members: int = 2, bound: dict[int, str], **wish: str) -> Cluster:
    """A gang of 8-GPU pods of which some are bound, as after a crash in the middle."""
    cluster = draw(Cluster(), drawing)
    cluster.set_gang(gang("g", minMember=members, topology=wish or None))
    for i in range(members):
        where = bound.get(i, "")
        held = "0,1,2,3,4,5,6,7" if where else ""
        cluster.set_pod(pod(f"g-{i}", gpus=8, gang="g", on=where, held=held))
    return cluster


def test_half_placed_gang_is_completed_in_its_own_domain():
    cluster = half_bound(TWO_LEAVES, bound={0: "b1"}, required="leaf")
    Decider(cluster).decide(0.0)
    assert places(cluster) == {"g-0": "b1", "g-1": "b2"}


def test_half_placed_gang_comes_before_more_important_ones():
    cluster = half_bound("s1/l1: a1:8 a2:8", bound={0: "a1"})
    cluster.set_pod(pod("vip", gpus=8, priority=1000, preemptionPolicy="Never"))
    result = Decider(cluster).decide(0.0)
    assert places(cluster) == {"g-0": "a1", "g-1": "a2"}
    assert [key.name for key in result.failed] == ["vip"]


@pytest.mark.parametrize("in_the_way", [True, False])
def test_a_half_placed_gang_that_cannot_complete_frees_its_nodes(in_the_way):
    cluster = half_bound(TWO_LEAVES, bound={0: "b1"}, required="leaf")
    if in_the_way:
        cluster.set_pod(pod("other", gpus=8, on="b2", held="0,1,2,3,4,5,6,7"))
    else:
        cluster.remove_node("b2")
    decider = Decider(cluster)
    first = decider.decide(100.0)
    assert (first.rollbacks, first.wake_at) == ([], 100.0 + ROLLBACK.seconds)
    assert decider.decide(100.0 + ROLLBACK.seconds / 2).rollbacks == []
    (rollback,) = decider.decide(100.0 + ROLLBACK.seconds).rollbacks
    assert rollback.workload == KEY
    assert [m.name for m in rollback.members] == ["g-0"]


def test_a_way_found_in_time_is_taken_instead():
    cluster = half_bound(TWO_LEAVES, bound={0: "b1"}, required="leaf")
    cluster.remove_node("b2")
    decider = Decider(cluster)
    decider.decide(100.0)
    cluster.set_node(node("b2", labels={"spine": "s1", "leaf": "l2"}))
    assert len(decider.decide(101.0).placements) == 1
    assert decider.decide(100.0 + 2 * ROLLBACK.seconds).rollbacks == []


def test_a_half_placed_gang_without_other_pods_frees_its_nodes():
    cluster = half_bound(TWO_LEAVES, bound={0: "b1"})
    decider = Decider(cluster)
    cluster.remove_pod("default", "g-1")
    assert decider.decide(0.0).wake_at == ROLLBACK.seconds
    assert [r.workload for r in decider.decide(ROLLBACK.seconds).rollbacks] == [KEY]


@pytest.mark.parametrize("seen_whole_by", ["this process", "an earlier one"])
def test_gang_that_was_whole_once_is_repaired_never_rolled_back(seen_whole_by):
    cluster = half_bound(TWO_LEAVES, bound={0: "b1", 1: "b2"}, required="leaf")
    decider = Decider(cluster)
    if seen_whole_by == "this process":
        decider.decide(0.0)
        assert cluster.workloads[KEY].whole
    else:
        cluster = draw(Cluster(), TWO_LEAVES)
        shown = gang("g", minMember=2, topology={"required": "leaf"})
        status = type(shown.status)(placed_at="2026-01-01T00:00:00Z")
        cluster.set_gang(type(shown)(metadata=shown.metadata, spec=shown.spec, status=status))
        cluster.set_pod(pod("g-0", gpus=8, gang="g", on="b1", held="0,1,2,3,4,5,6,7"))
        decider = Decider(cluster)
    cluster.remove_node("b2")
    cluster.set_pod(pod("g-1", gpus=8, gang="g", uid="another"))
    for now in (0.0, ROLLBACK.seconds, 10 * ROLLBACK.seconds):
        result = decider.decide(now)
        assert (result.placements, result.rollbacks) == ([], [])


def test_a_member_pins_its_domain_once_its_node_is_known():
    cluster = half_bound("s1/l1: a1:8-8 a2:8", bound={0: "late"}, required="leaf", members=3)
    decider = Decider(cluster)
    assert decider.decide(0.0).placements == []
    for name in ("late", "b2", "b3"):
        cluster.set_node(node(name, labels={"spine": "s1", "leaf": "l2"}))
    cluster.remove_pod("default", "hold-a1")
    decider.decide(1.0)
    assert set(places(cluster, "g-").values()) == {"late", "b2", "b3"}


def test_members_being_deleted_do_not_pin_the_next_attempt():
    cluster = draw(Cluster(), TWO_LEAVES)
    cluster.set_gang(gang("g", minMember=2, topology={"required": "leaf"}))
    old = pod("old", gpus=8, gang="g", on="b1", held="0,1,2,3,4,5,6,7", terminating=True)
    cluster.set_pod(old)
    for i in range(2):
        cluster.set_pod(pod(f"g-{i}", gpus=8, gang="g"))
    Decider(cluster).decide(0.0)
    assert places(cluster, "g-") == {"g-0": "a1", "g-1": "a2"}


def test_a_failed_binding_is_forgotten_and_decided_again():
    cluster = draw(Cluster(), "s1/l1: a:8 b:8")
    add(cluster, draw_gang("g: 2x8"))
    decider = Decider(cluster)
    (placement,) = decider.decide(0.0).placements
    lost = placement.assignments[1].member
    cluster.forget(lost.key, lost.uid)
    assert decider.decide(0.0, busy={KEY}).placements == []
    (again,) = decider.decide(0.0).placements
    assert [a.member.name for a in again.assignments] == ["g-1"]


def test_a_failed_gang_is_retried_only_when_resources_were_freed():
    cluster = draw(Cluster(), "s1/l1: a:8-8 b:8")
    add(cluster, draw_gang("g: 2x8"))
    decider = Decider(cluster)
    assert decider.decide(0.0).failed == [KEY]
    cluster.set_pod(pod("filler", cpu=1))
    assert decider.decide(0.0).failed == []
    cluster.remove_pod("default", "hold-a")
    assert len(decider.decide(0.0).placements) == 1


def test_a_confirmed_assumption_frees_nothing_and_moves_nothing():
    cluster = draw(Cluster(), "s1/l1: a:8")
    cluster.set_pod(pod("p", gpus=2))
    decider = Decider(cluster)
    decider.decide(0.0)
    freed, version = cluster.freed, cluster.table.version
    cluster.set_pod(pod("p", gpus=2))  # a late event from before the binding
    assert places(cluster) == {"p": "a"}
    cluster.set_pod(pod("p", gpus=2, on="a", held="0,1"))
    assert (cluster.freed, cluster.table.version) == (freed, version)
    assert decider.decide(0.0).placements == []


def test_a_pod_of_another_scheduler_uses_room_and_stays_unplaced():
    cluster = draw(Cluster(), "s1/l1: a:8")
    cluster.set_pod(pod("theirs", gpus=4, scheduler="default-scheduler", on="a"))
    cluster.set_pod(pod("waits", gpus=1, scheduler="default-scheduler"))
    add(cluster, draw_gang("g: 1x8"))
    result = Decider(cluster).decide(0.0)
    assert (result.failed, places(cluster)) == ([KEY], {"theirs": "a"})


def test_pods_of_a_served_scheduler_are_ours_to_place():
    cluster = draw(Cluster(("volcano",)), "s1/l1: a:8")
    cluster.set_pod(pod("waits", gpus=1, scheduler="volcano"))
    cluster.set_pod(pod("theirs", gpus=1, scheduler="default-scheduler"))
    Decider(cluster).decide(0.0)
    assert places(cluster) == {"waits": "a"}


def test_priority_class_orders_gangs():
    cluster = draw(Cluster(), "s1/l1: a:8")
    cluster.set_priority_class(PriorityClass(metadata=ObjectMeta(name="high"), value=100))
    add(cluster, draw_gang("old: 1x8", created="2026-01-01T00:00:00Z"))
    late = draw_gang("g: 1x8", created="2026-01-02T00:00:00Z", priorityClassName="high")
    add(cluster, late)
    decider = Decider(cluster)
    decider.decide(0.0)
    assert places(cluster) == {"g-0": "a"}
    assert decider.pending_queue.all() == [WorkloadKey("Gang", "default", "old")]


def test_devices_of_unknown_pods_on_new_nodes_are_not_free():
    cluster = Cluster()
    cluster.set_pod(pod("early", gpus=2, on="late", held="0,1"))
    cluster.set_pod(pod("next", gpus=2))
    cluster.set_node(node("late", gpus=4))
    (placement,) = Decider(cluster).decide(0.0).placements
    assert placement.assignments[0].spot == Spot("late", Grant(0b1100))


@pytest.mark.parametrize("sizes", [[1] * 20, [2, 2, 1, 1, 1, 2, 4, 4, 1], [8, 1, 1, 8, 1], [3] * 6])
@pytest.mark.parametrize("freed", [None, 2, 5])
def test_pods_that_follow_each_other_go_where_each_alone_would(sizes, freed):
    def run(fresh: bool) -> dict[str, str]:
        cluster = draw(Cluster(), "s/l: a:8-6 b:8-2 c:8 d:4")
        decider = Decider(cluster)
        for i, gpus in enumerate(sizes):
            cluster.set_pod(pod(f"p{i:02}", gpus=gpus))
            if i == freed:
                cluster.remove_pod("default", "hold-b")
            if fresh:
                decider = Decider(cluster)
            decider.decide(0.0)
        return places(cluster, "p")

    assert run(fresh=False) == run(fresh=True)
