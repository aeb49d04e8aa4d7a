"""Past use of queues outlives a change of leader, with few writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.running import Running

from lockstep.api.queue import QueueSpec, QueueStatus
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.quota_messages import queue_status
from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.quota.usage_history import TOLERANCE, decayed, history, recalled

GPU = "nvidia.com/gpu"
CAPACITY = {GPU: 100_000}
HALF_LIFE = 600.0


def account() -> Account:
    return Account.of("q", QueueSpec(usage_half_life="10m"))


def write(status: QueueStatus, one: Account, now: float) -> QueueStatus:
    return convert(history(status, one, now, CAPACITY), QueueStatus)


@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 100)), max_size=12),
    st.integers(0, 3000),
)
def test_a_new_leader_counts_past_use_like_the_old_one(steps, later):
    one, status, now = account(), QueueStatus(), 1_000_000.0
    status = write(status, one, now)
    for seconds, gpus in [*steps, (later, 0)]:
        one.average = decayed(one.average, one.used, seconds, HALF_LIFE)
        now += seconds
        there = recalled(status, one, now)
        apart = abs(there.get(GPU, 0.0) - one.average.get(GPU, 0.0))
        assert apart <= TOLERANCE * CAPACITY[GPU] * 1.2  # what is shown is rounded to a second
        one.used[GPU] = gpus * 1000
        status = write(status, one, now)


def test_nothing_is_written_again_while_the_use_stays_the_same():
    one = account()
    one.used[GPU] = 64_000
    status = write(QueueStatus(), one, 1_000_000.0)
    for _ in range(50):
        one.average = decayed(one.average, one.used, 60.0, HALF_LIFE)
    assert one.average[GPU] == pytest.approx(62_000, rel=0.01)
    assert write(status, one, 1_003_000.0) == status


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"averageUse": {GPU: "much"}, "averageAt": "1970-01-12T13:46:40Z"},
        {"averageUse": {GPU: 8}, "averageAt": "yesterday"},
    ],
)
def test_what_cannot_be_read_counts_as_nothing(shown):
    assert recalled(convert(shown, QueueStatus), account(), 1_000_000.0) == {}


def test_a_queue_that_forgets_shows_nothing():
    one = Account.of("q", QueueSpec())
    assert history(QueueStatus(), one, 5.0, CAPACITY) == {"averageUse": {}, "averageAt": None}


def test_running_use_counts_for_its_whole_time():
    world = Running.on("s/l: a:8 b:8", {"q": {"usageHalfLife": "10m"}})
    world.run("x: 2x8", "q")
    world.now += 3600
    world.end("x")
    world.settle()
    average = world.cluster.ledger.accounts["q"].average[GPU]
    assert average == pytest.approx(16_000 * (1 - 0.5**6), rel=0.01)


def test_after_a_restart_the_same_queue_is_served_next():
    spec = {"usageHalfLife": "10m"}
    world = Running.on("s/l: a:8 b:8", {"q": spec, "r": spec})
    world.run("x: 2x8", "q")
    world.now += 3600
    world.settle()
    world.end("x")
    world.settle()
    shown = {name: queue_status(world.cluster, name, {}) for name in "qr"}
    after = Running.on("s/l: a:8 b:8")
    after.now = world.now
    for name in "qr":
        known = world.cluster.ledger.specs[name]
        after.cluster.set_queue(replace(known, status=convert(shown[name], QueueStatus)))
    after.decider = Decider(after.cluster)
    after.submit("first: 2x8", "q")
    after.submit("second: 2x8", "r")
    after.settle()
    assert after.there() == {"second"}, "q had all of it for an hour"
