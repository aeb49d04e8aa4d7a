"""What is due when: in order of time, and for a key only what was planned last."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from lockstep.scheduler.core.runtime.event_queue import EventQueue

TIMES = st.sampled_from([0.0, 1.0, 2.0, 3.5, inf])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plan"), st.none(), TIMES),
        st.tuples(st.just("replace"), st.sampled_from("abc"), TIMES),
        st.tuples(st.just("drop"), st.sampled_from("abc"), st.none()),
    ),
    max_size=20,
)


@given(STEPS, TIMES)
def test_due_entries_come_in_order_and_replaced_ones_never(steps, until):
    agenda = EventQueue()
    happened: list[int] = []
    planned: list[tuple[float, int, str | None]] = []
    for number, (how, key, at) in enumerate(steps):
        if how != "plan":
            planned = [one for one in planned if one[2] != key]
        if how == "plan":
            agenda.plan(at, happened.append, number)
        elif how == "replace":
            agenda.replace(key, at, happened.append, number)
        else:
            agenda.drop(key)
        if at is not None and at != inf:
            planned.append((at, number, key))
    planned.sort(key=lambda one: one[:2])
    assert agenda.next == (planned[0][0] if planned else None)
    while (entry := agenda.take(until)) is not None:
        entry.act(*entry.args)
    assert happened == [number for at, number, _ in planned if at <= until]
    assert agenda.next == next((at for at, _, _ in planned if at > until), None)


def test_what_happened_can_be_planned_anew():
    agenda, happened = EventQueue(), []
    for at in (1.0, 2.0):
        agenda.replace("a", at, happened.append, at)
        entry = agenda.take(at)
        assert entry is not None
        entry.act(*entry.args)
        agenda.drop("a")
    assert happened == [1.0, 2.0]
