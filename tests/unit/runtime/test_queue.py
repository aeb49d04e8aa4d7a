"""The work queue under any order of additions, failures and times."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.examples import examples

from lockstep.api.backoff import Backoff, Bucket
from lockstep.runtime.queue import WorkQueue

KEYS = st.sampled_from("abcd")
DELAYS = st.floats(0.0, 10.0)


class QueueMachine(RuleBasedStateMachine):
    """Holds the queue against what was asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.queue: WorkQueue[str] = WorkQueue(Backoff(1.0, 8.0, jitter=0.0))
        self.working: list[str] = []
        self.wanted: dict[str, float] = {}
        """Keys that must come up again, and the earliest time that was asked for."""

    def want(self, key: str, due: float) -> None:
        self.wanted[key] = min(due, self.wanted.get(key, due))

    @rule(seconds=st.floats(0.0, 5.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key, self.now)
        self.want(key, self.now)

    @rule(key=KEYS, delay=DELAYS)
    def add_after(self, key: str, delay: float) -> None:
        self.queue.add_after(key, delay, self.now)
        self.want(key, self.now + delay)

    @rule()
    def take(self) -> None:
        taken = self.queue.take(self.now)
        ready = [k for k, due in self.wanted.items() if due <= self.now and k not in self.working]
        if taken is None:
            assert not ready
            return
        key, waited = taken
        assert key in ready
        assert 0 <= waited <= self.now - 100.0
        del self.wanted[key]
        self.working.append(key)

    @precondition(lambda self: self.working)
    @rule(index=st.integers(0, 3))
    def done(self, index: int) -> None:
        key = self.working.pop(index % len(self.working))
        self.queue.forget(key)
        self.queue.done(key, self.now)
        assert self.queue.failures(key) == 0

    @precondition(lambda self: self.working)
    @rule(index=st.integers(0, 3))
    def fail(self, index: int) -> None:
        key = self.working.pop(index % len(self.working))
        before = self.queue.failures(key)
        delay = self.queue.retry(key, self.now)
        self.want(key, self.now + delay)
        self.queue.done(key, self.now)
        assert delay >= min(8.0, 2.0**before)

    @invariant()
    def no_key_is_worked_on_twice(self) -> None:
        assert len(set(self.working)) == len(self.working) == self.queue.working

    @invariant()
    def it_knows_when_to_look_again(self) -> None:
        later = [d for k, d in self.wanted.items() if d > self.now and k not in self.working]
        due = self.queue.next_due()
        assert not later or (due is not None and due <= min(later))

    @invariant()
    def it_is_idle_only_when_nothing_is_wanted(self) -> None:
        assert self.queue.idle == (not self.wanted and not self.working)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=examples(200), stateful_step_count=40)


def take(queue: WorkQueue[str], now: float) -> str | None:
    taken = queue.take(now)
    return taken[0] if taken else None


def test_keys_come_out_in_the_order_they_became_ready() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late", 2.0, 0.0)
    queue.add_after("soon", 1.0, 0.0)
    queue.add("now", 0.0)
    assert [take(queue, 5.0) for _ in range(4)] == ["now", "soon", "late", None]


def test_many_additions_are_one_piece_of_work() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(5):
        queue.add("a", 0.0)
    assert len(queue) == 1
    assert (take(queue, 0.0), take(queue, 0.0)) == ("a", None)


def test_what_is_added_during_the_work_comes_after_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0.0)
    assert take(queue, 0.0) == "a"
    queue.add("a", 1.0)
    assert take(queue, 1.0) is None
    queue.done("a", 2.0)
    assert take(queue, 2.0) == "a"


def test_an_event_overtakes_the_wait_after_a_failure() -> None:
    queue: WorkQueue[str] = WorkQueue(Backoff(60.0, 60.0))
    queue.add("a", 0.0)
    queue.take(0.0)
    queue.retry("a", 0.0)
    queue.done("a", 0.0)
    assert take(queue, 1.0) is None
    queue.add("a", 1.0)
    assert take(queue, 1.0) == "a"


def test_when_everything_fails_all_keys_together_slow_down() -> None:
    queue: WorkQueue[int] = WorkQueue(Backoff(0.1, 0.1, jitter=0.0), bucket=Bucket(10.0, 5.0))
    waits = [queue.retry(key, 0.0) for key in range(10)]
    assert waits[:6] == [0.1] * 6
    assert waits[6:] == pytest.approx([0.2, 0.3, 0.4, 0.5])
    assert queue.retry(10, 60.0) == 0.1
