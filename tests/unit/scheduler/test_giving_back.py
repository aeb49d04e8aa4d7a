"""What is given back of accounts, kept by what has moved, is what all that stands says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.backfilled import at_most, runs
from tests.support.drawn import queue
from tests.support.examples import examples
from tests.support.running import Running

from lockstep.scheduler.core.reservations.quota_releases import QuotaReleases

QUEUES = {"org": at_most(64), "q": {"parent": "org"}, "r": {"parent": "org"}, "t": {}}
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["run", "wait", "end", "say", "limit", "evict", "leave"]),
        st.integers(0, 9),
        st.sampled_from([None, 50, 400]),
    ),
    max_size=14,
)


def happen(world: Running, number: int, what: str, one: int, seconds: float | None) -> None:
    standing = sorted(world.there())
    name = standing[one % len(standing)] if standing else ""
    if what == "run":
        many = one % 3 + 1
        name = world.submit(f"g{number}: {many}x2", "qrt"[one % 3], **runs(seconds))
        world.stand(name, ["abcdefghijklmn"[number]] * many)
    elif what == "wait":
        world.now += 20 * one
    elif what == "limit":
        world.cluster.set_queue(queue("r", parent="org", **at_most(one)))
    elif what == "end" and name:
        world.end(name)
    elif what == "say" and name:
        world.annotate(name, {"lockstep.dev/runtime": str(seconds or 0)})
    elif what == "evict" and name:
        world.renew(world.gangs[name].pods[0].metadata.name)
    elif what == "leave" and name:
        world.graceful = True
        world._leave(world.gangs[name].pods[0].metadata.name)


@settings(max_examples=examples(150), deadline=None)
@given(EVENTS)
def test_reservations_kept_by_changes_equal_those_made_anew(events):
    world = Running.on("s/l: " + " ".join(f"{name}:8" for name in "abcdefghijklmn"), QUEUES)
    kept = QuotaReleases(world.cluster)
    sums = {name: kept_sums(kept, world, name) for name in QUEUES}
    for number, event in enumerate(events):
        happen(world, number, *event)
        world.cluster.settle()
        moved = kept.update(world.now, world.cluster.touched)
        world.cluster.touched = set()
        anew = QuotaReleases(world.cluster)
        anew.update(world.now)
        assert sorted(kept.of(None)) == sorted(anew.of(None))
        assert kept.next == anew.next
        for name in QUEUES:
            before, sums[name] = sums[name], kept_sums(kept, world, name)
            if moved is not None:
                account = world.cluster.ledger.account(name)
                for one in moved:
                    if account in one.account.chain:
                        before += sum(a.get("nvidia.com/gpu", 0) for _, a in one.after)
                        before -= sum(a.get("nvidia.com/gpu", 0) for _, a in one.before)
                assert before == sums[name]


def kept_sums(kept: QuotaReleases, world: Running, queue: str) -> int:
    account = world.cluster.ledger.account(queue)
    return kept.by(account, float("inf"), ["nvidia.com/gpu"])["nvidia.com/gpu"]
