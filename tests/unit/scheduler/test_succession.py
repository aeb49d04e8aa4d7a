"""A leader takes up what the one before it promised, whatever the pods say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.backfilled import runs
from tests.support.drawn import Drawn, pod
from tests.support.examples import examples
from tests.support.running import Running

from lockstep.api.core import Pod
from lockstep.api.gang import Gang, GangReservation, GangStatus
from lockstep.api.meta import Condition
from lockstep.api.timestamp import show
from lockstep.api.wire import convert
from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.reservations.reserved_nodes import end_of
from lockstep.scheduler.core.runtime.gang_status import gang_status
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import format_indices

THREE = "s/l: a:8 b:8 c:8"
Says = Callable[[str], bool]
"""Whether the pods of a gang say since when they run."""


def nobody(_: str) -> bool:
    return False


def everybody(_: str) -> bool:
    return True


def waiting(*seconds: float) -> Running:
    """One node is taken for each of these times; the gang ``big`` needs all three nodes."""
    world = Running.on(THREE)
    for number, runtime in enumerate(seconds):
        world.run(f"x{number}: 1x8", **runs(runtime))
    world.run("big: 3x8", **runs(100))
    return world


def promise(world: Running) -> Reservation:
    held = world.cluster.reservations.room
    assert held is not None
    assert held.workload.name == "big"
    return held


def succeeded(world: Running, says: Says = nobody, **records: GangReservation | None) -> Running:
    """Return the world of the next leader, which knows what can be read; *records* go before."""
    new = Running.on(THREE)
    new.now = world.now
    for name, drawn in world.gangs.items():
        gang = _shown(world, drawn.gang)
        if name in records:
            gang = replace(gang, status=replace(gang.status, reservation=records[name]))
        new.gangs[name] = Drawn(gang, drawn.pods)
        new.cluster.set_gang(gang)
        for one in drawn.pods:
            member = world.cluster.pods["default", one.metadata.name]
            new.cluster.set_pod(_standing(one, member, says(name)) if member.node else one)
    new.settle()
    return new


def _shown(world: Running, gang: Gang) -> Gang:
    workload = world.cluster.workloads[WorkloadKey("Gang", "default", gang.metadata.name)]
    status = gang_status(world.cluster, workload, None, None, show(world.now))
    there = {name: value for name, value in status.items() if value is not None}
    return replace(gang, status=convert(there, GangStatus))


def _standing(one: Pod, member: Member, says: bool) -> Pod:
    held = {"lockstep.dev/gpus": format_indices(member.gpus)} if member.gpus else {}
    since = show(member.since) if says and member.since is not None else None
    return replace(
        one,
        metadata=replace(one.metadata, annotations={**one.metadata.annotations, **held}),
        spec=replace(one.spec, node_name=member.node),
        status=replace(one.status, phase="Running" if says else "Pending", start_time=since),
    )


@pytest.mark.parametrize("says", [nobody, everybody])
@pytest.mark.parametrize("passing", [300, 3000, None])
def test_the_next_leader_keeps_time_and_place(says: Says, passing: float | None):
    world = waiting(600)
    before = promise(world)
    after = succeeded(world, says)
    assert (promise(after).at, promise(after).place) == (before.at, before.place)
    after.run("small: 1x8", **runs(passing))
    assert ("small" in after.there()) == (passing == 300)
    assert promise(after).at == before.at


def test_a_promise_without_a_record_waits_for_a_known_end():
    world = waiting(600)
    after = succeeded(world, big=None)
    assert after.cluster.reservations.room is None
    for one in after.gangs["x0"].pods:
        member = world.cluster.pods["default", one.metadata.name]
        after.cluster.set_pod(_standing(one, member, says=True))
    after.now += 2.0
    after.settle()
    assert promise(after).at <= promise(world).at


LONG_AGO = GangReservation("1970-01-02T00:00:00Z", {"big-0": "a"})
UNREADABLE = GangReservation("soon", {"big-0": "a"})
ELSEWHERE = GangReservation("1970-02-01T00:00:00Z", {"big-0": "gone"})
OTHERS = GangReservation("1970-02-01T00:00:00Z", {"nobody": "a"})


@pytest.mark.parametrize("record", [LONG_AGO, UNREADABLE, ELSEWHERE, OTHERS])
def test_what_cannot_be_kept_is_made_anew(record: GangReservation):
    world = waiting(600)
    after = succeeded(world, everybody, big=record)
    assert promise(after).at == promise(world).at
    assert set(promise(after).place) == {"big-0", "big-1", "big-2"}


def test_a_promise_into_which_somebody_has_sat_down_is_none():
    world = waiting(600, 5000)
    early = GangReservation(show(promise(world).at - 4000), promise(world).place)
    after = succeeded(world, everybody, big=early)
    assert promise(after).at == promise(world).at


def test_of_several_records_that_of_the_next_in_line_counts():
    world = waiting(600)
    world.run("later: 3x8")
    late = GangReservation(
        show(promise(world).at + 900), {f"later-{i}": n for i, n in enumerate("abc")}
    )
    after = succeeded(world, later=late)
    assert promise(after).at == promise(world).at


def test_a_record_is_taken_up_but_once():
    world = succeeded(waiting(600))
    world.end("big")
    world.settle()
    assert world.cluster.reservations.room is None
    assert not world.cluster.table.held.any()


def test_what_is_shown_is_taken_out_when_it_is_over():
    world = succeeded(waiting(600), everybody)
    world.cluster.remove_node("a")
    world.settle()
    assert world.cluster.reservations.room is None
    key = WorkloadKey("Gang", "default", "big")
    shown = gang_status(world.cluster, world.cluster.workloads[key], None, 1, show(world.now))
    assert shown["reservation"] is None


def test_an_unstarted_pod_counts_from_when_it_got_its_node():
    cluster = Cluster()
    got = Condition(type="PodScheduled", status="True", last_transition_time=show(500.0))
    one = pod("p", gpus=1, on="a", annotations=runs(60)["annotations"])
    one = replace(one, status=replace(one.status, conditions=[got]))
    cluster.set_pod(one)
    assert end_of(cluster, cluster.pods["default", "p"]) == 560.0
    cluster.set_pod(replace(one, status=replace(one.status, start_time=show(510.0))))
    assert end_of(cluster, cluster.pods["default", "p"]) == 570.0


PASSING = st.lists(
    st.tuples(st.integers(1, 8), st.sampled_from([None, 50, 400, 5000]), st.booleans()), max_size=6
)


@settings(max_examples=examples(50), deadline=None)
@given(PASSING, st.lists(st.integers(200, 900), min_size=1, max_size=3), st.data())
def test_no_change_of_leaders_moves_the_time_of_the_first(passing, ends, data):
    world = waiting(*map(float, ends))
    due, true_ends = promise(world).at, _ends(world)
    for number, (gpus, runtime, change) in enumerate(passing):
        world.run(f"p{number}: 1x{gpus}", **runs(runtime))
        true_ends = _ends(world) | true_ends
        if change:
            silent = data.draw(st.sets(st.sampled_from(sorted(world.gangs))))
            world = succeeded(world, lambda name, silent=silent: name not in silent)
        assert promise(world).at == due
    while "big" not in world.there():
        true_ends = _ends(world) | true_ends
        name = min(world.there(), key=lambda one: true_ends.get(one, float("inf")))
        world.now = max(world.now, true_ends[name])
        assert world.now <= due, "it starts when its time has come, if all end as they said"
        world.end(name)
        world.settle()


def _ends(world: Running) -> dict[str, float]:
    """Return when gangs end that say how long they run, as far as that is known."""
    found: dict[str, Any] = {}
    for member in world.cluster.pods.values():
        end = end_of(world.cluster, member) if member.node else None
        if end is not None and member.workload is not None:
            found[member.workload.name] = end
    return found
