"""What pods that are gone had asked for outlives a restart, with few writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.drawn import node, pod, queue

from lockstep.api.core import Pod
from lockstep.api.meta import ObjectMeta
from lockstep.api.queue import Queue, QueueStatus, Usual
from lockstep.api.wire import convert, to_builtins
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.quota_messages import queue_status
from lockstep.scheduler.core.scoring.demand_history import PastRequest
from lockstep.scheduler.core.scoring.demand_store import KINDS, TOLERANCE
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

SHARES = {
    "half": {"lockstep.dev/gpu-compute": 50},
    "memory": {"lockstep.dev/gpu-memory": 8000, "lockstep.dev/gpu-cards": 2},
    "both": {"lockstep.dev/gpu-compute": 81, "lockstep.dev/gpu-memory": "16Gi"},
    "whole": {"nvidia.com/gpu": 8},
    "cpu": {"cpu": "1500m", "memory": "3Gi"},
}
NOW = 1_796_000_000.0
"""A day of November 2026."""
MODELS = {"nodeSelector": {"nvidia.com/gpu.product": "A100"}}


def ask(name: str, kind: str, day: str = "2026-11-01", queue: str = "", **more: Any) -> Pod:
    labels = {"lockstep.dev/queue": queue} if queue else {}
    created = f"{day}T08:00:00Z"
    return pod(name, requests=SHARES[kind], labels=labels, created=created, **more)


def come_and_go(cluster: Cluster, pods: Iterable[Pod]) -> None:
    for one in pods:
        cluster.set_pod(one)
        cluster.remove_pod("default", one.metadata.name)


def with_queues(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.set_queue(queue(name))
    return cluster


def known(cluster: Cluster) -> dict[PastRequest, float]:
    """Return what is usual, as parts of all that came."""
    usual = dict(cluster.past.usual())
    return {ask: weight / sum(usual.values()) for ask, weight in usual.items()}


def shown(cluster: Cluster, name: str, before: QueueStatus = QueueStatus()) -> Queue:  # noqa: B008
    """Return a queue as its status would be written next."""
    cluster.settle()
    there = cluster.ledger.specs[name]
    cluster.ledger.specs[name] = replace(there, status=before)
    status = convert(queue_status(cluster, name, {}), QueueStatus)
    return replace(there, status=status)


def after_restart(queues: Iterable[Queue], pods: Iterable[Pod] = ()) -> Cluster:
    cluster = Cluster()
    for one in queues:
        cluster.set_queue(one)
    for left in pods:
        cluster.set_pod(left)
    cluster.memory.count(NOW)
    return cluster


ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from(sorted(SHARES)),
        st.integers(1, 28),
        st.sampled_from(["", "q", "missing"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


@settings(deadline=None)
@given(ARRIVALS)
def test_a_restarted_scheduler_knows_what_the_last_one_knew(arrivals) -> None:
    before, there = with_queues("default", "q"), []
    for number, (kind, day, name, stays) in enumerate(arrivals):
        one = ask(f"p{number}", kind, f"2026-11-{day:02}", name)
        before.set_pod(one)
        if stays:
            there.append(one)
        else:
            before.remove_pod("default", one.metadata.name)
    after = after_restart([shown(before, "default"), shown(before, "q")], there)
    one, other = known(before), known(after)
    assert one.keys() == other.keys()
    assert all(other[ask] == pytest.approx(one[ask], abs=1e-3) for ask in one)
    assert before.past.sharing == after.past.sharing


@settings(deadline=None)
@given(ARRIVALS)
def test_a_rarely_written_history_stays_close_to_the_known_one(arrivals) -> None:
    cluster, status = with_queues("default"), QueueStatus()
    for number, (kind, day, _, _) in enumerate(arrivals):
        come_and_go(cluster, [ask(f"p{number}", kind, f"2026-11-{day:02}")])
        status = shown(cluster, "default", status).status
        one, other = known(cluster), known(after_restart([shown(cluster, "default", status)]))
        lost = sum(abs(one[ask] - other.get(ask, 0.0)) for ask in one)
        assert lost <= 2 * TOLERANCE + 1e-3


def test_it_is_written_less_and_less_often() -> None:
    cluster, status, writes = with_queues("default"), QueueStatus(), 0
    for number in range(1000):
        come_and_go(cluster, [ask(f"p{number}", ("half", "whole")[number % 2])])
        newer = shown(cluster, "default", status).status
        writes += newer.usual != status.usual
        status = newer
    assert 20 <= writes <= 120


@pytest.mark.parametrize("restarted", [False, True])
def test_the_next_place_is_the_same_after_a_restart(restarted: bool) -> None:
    """By what usually comes, a third of a card opens a card rather than spoil a half."""
    cluster = with_queues("default")
    sizes = {81: 5, 65: 3, 47: 6, 32: 4, 16: 2}
    for size, often in sizes.items():
        share = {"lockstep.dev/gpu-compute": size}
        come_and_go(cluster, [pod(f"p{size}-{i}", requests=share, cpu=1) for i in range(often)])
    if restarted:
        cluster = after_restart([shown(cluster, "default")])
    cluster.set_node(node("a", gpus=2))
    share = {"lockstep.dev/gpu-compute": 47}
    cluster.set_pod(pod("there", requests=share, on="a", held="1", cpu=1))
    cluster.set_pod(pod("late", requests={"lockstep.dev/gpu-compute": 32}, cpu=1))
    Decider(cluster).decide(NOW)
    assert indices_of(cluster.pods["default", "late"].gpus) == (0,)


def test_what_is_shown_reads_as_what_was_asked() -> None:
    cluster = with_queues("q")
    come_and_go(cluster, [ask(f"old-{i}", "both", "2026-11-01", "q", **MODELS) for i in range(3)])
    come_and_go(cluster, [ask("new", "cpu", "2026-11-08", "q")])
    come_and_go(cluster, [ask("theirs", "half", queue="q", scheduler="default-scheduler")])
    assert to_builtins(shown(cluster, "q").status.usual) == {
        "day": "2026-11-08",
        "asked": [
            {
                "requests": {
                    "lockstep.dev/gpu-cards": 1,
                    "lockstep.dev/gpu-compute": 81,
                    "lockstep.dev/gpu-memory": 16384,
                },
                "models": ["A100"],
                "pods": "1500m",
            },
            {"requests": {"cpu": "1500m", "memory": "3072Mi"}, "pods": "1000m"},
        ],
    }


def test_a_gone_pod_is_kept_once_and_by_its_queue() -> None:
    cluster = with_queues("default", "q")
    one = ask("p", "half", queue="q")
    for _ in range(3):
        cluster.set_pod(one)
    assert shown(cluster, "q").status.usual is None
    cluster.set_pod(replace(one, metadata=replace(one.metadata, uid="another")))
    cluster.remove_pod("default", "p")
    cluster.remove_pod("default", "p")
    cluster.set_queue(shown(cluster, "q"))  # as its own write comes back
    usual = shown(cluster, "q").status.usual
    assert usual is not None
    assert [one.pods for one in usual.asked] == ["2000m"]
    assert shown(cluster, "default").status.usual is None
    cluster.remove_queue("q")
    assert shown(cluster, "default").status.usual == usual


def test_use_without_any_queue_is_kept_once_there_is_one() -> None:
    cluster = with_queues("q")
    come_and_go(cluster, [ask("p", "half")])
    assert shown(cluster, "q").status.usual is None
    cluster.set_queue(queue("default"))
    assert shown(cluster, "default").status.usual is not None


def test_the_commonest_kinds_are_kept_and_old_ones_fade() -> None:
    cluster = with_queues("default")
    pods = [pod(f"p{i}", cpu=i + 1, created="2026-01-01T00:00:00Z") for i in range(2 * KINDS)]
    come_and_go(cluster, [*pods, *pods[:10]])
    usual = shown(cluster, "default").status.usual
    assert usual is not None
    assert len(usual.asked) == KINDS
    come_and_go(cluster, pods[:1])
    again = shown(cluster, "default", QueueStatus(usual=usual)).status.usual
    assert again == usual, "the rare ones are forgotten, not missed"
    assert {one.requests["cpu"] for one in usual.asked} >= {f"{i + 1}000m" for i in range(10)}
    come_and_go(cluster, [ask("late", "half", "2026-06-01")])
    usual = shown(cluster, "default").status.usual
    assert usual is not None
    assert [one.pods for one in usual.asked] == ["1000m"]


GOOD = {"requests": {"cpu": 2}, "pods": 3}
FLAWS: list[tuple[str, dict[str, Any], str]] = [
    ("no day", {"day": "today", "asked": [GOOD]}, "status.usual.day is 'today'"),
    ("no quantity", {"asked": [{"requests": {"cpu": "much"}, "pods": 1}, GOOD]}, "asked[0]"),
    ("no number of pods", {"asked": [GOOD, {"requests": {}, "pods": "few"}]}, "asked[1]"),
    ("less than none", {"asked": [{"requests": {}, "pods": -1}, GOOD]}, "pods is -1"),
    ("beyond reason", {"asked": [{"requests": {"cpu": "1e900"}, "pods": 1}, GOOD]}, "cpu is 1e900"),
    ("endless", {"asked": [{"requests": {}, "pods": "1e400"}, GOOD]}, "pods is 1e400"),
    ("of another kind", {"asked": [{"requests": {"tpu": 1}, "pods": 1}, GOOD]}, "tpu is none of"),
    (
        "a share of nothing",
        {"asked": [{"requests": {"lockstep.dev/gpu-cards": 2}, "pods": 1}, GOOD]},
        "lockstep.dev/gpu-cards goes with",
    ),
]


@pytest.mark.parametrize(("usual", "words"), [f[1:] for f in FLAWS], ids=[f[0] for f in FLAWS])
def test_what_cannot_be_read_is_told_and_mended(usual: dict[str, Any], words: str) -> None:
    status = QueueStatus(usual=convert({"day": "2026-11-01", **usual}, Usual))
    given = Queue(metadata=ObjectMeta(name="default"), status=status)
    cluster = after_restart([given])
    assert words in cluster.memory.flaws["default"]
    read = [weight for _, weight in cluster.past.usual()]
    assert len(read) == ("day" not in usual)
    assert not after_restart([shown(cluster, "default", status)]).memory.flaws
    come_and_go(cluster, [ask("p", "half")])
    mended = shown(cluster, "default", status)
    assert not after_restart([mended]).memory.flaws
    assert known(after_restart([mended])) == pytest.approx(known(cluster))


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_days_out_of_all_bounds_stop_nobody(day: str) -> None:
    usual = convert({"day": day, "asked": [GOOD]}, Usual)
    cluster = after_restart([replace(queue("default"), status=QueueStatus(usual=usual))])
    come_and_go(cluster, [ask("p", "half")])
    for seen in (QueueStatus(), QueueStatus(usual=usual)):
        assert shown(cluster, "default", seen).status.usual is not None
    cluster = with_queues("default")
    come_and_go(cluster, [ask("p", "half")])
    written = shown(cluster, "default", QueueStatus(usual=usual)).status.usual
    assert written is not None
    assert written.day == "2026-11-01"


def test_a_day_in_the_future_does_not_outweigh_later_days() -> None:
    usual = convert({"day": "9999-12-31", "asked": [GOOD]}, Usual)
    cluster = Cluster()
    cluster.set_pod(ask("before", "half"))
    cluster.set_queue(replace(queue("default"), status=QueueStatus(usual=usual)))
    assert shown(cluster, "default", QueueStatus(usual=usual)).status.usual == usual, "not yet read"
    Decider(cluster).decide(NOW)
    come_and_go(cluster, [ask(f"p{i}", "half", "2026-11-28") for i in range(5)])
    assert [ask.share is not None for ask in known(cluster)] == [True, False]
    written = shown(cluster, "default", QueueStatus(usual=usual)).status.usual
    assert written is not None
    assert written.day == "2026-12-01", "the day after"
