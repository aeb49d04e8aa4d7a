"""What rates nodes: strategies per queue and job, learnt from the past, kept up row by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import gang, node, pod, queue

from lockstep.api.core import Pod
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.scoring.demand_history import MOST, DemandHistory, past_request
from lockstep.scheduler.core.scoring.feasibility import ShapeFit
from lockstep.scheduler.core.scoring.gpu_milli_view import GpuMilliView
from lockstep.scheduler.core.scoring.strategies import BOUND, ForesightPreference
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

MODEL = "nvidia.com/gpu.product"


def share(name: str, compute: int = 0, memory: int = 0, cards: int = 1, **more: Any) -> Pod:
    """A pod with a share of *cards* GPUs: hundredths of compute and MiB of each."""
    requests = {
        "lockstep.dev/gpu-compute": compute,
        "lockstep.dev/gpu-memory": memory,
        "lockstep.dev/gpu-cards": cards,
    }
    return pod(name, requests=requests, **more)


def come_and_go(cluster: Cluster, pods: Iterable[Pod]) -> None:
    for one in pods:
        cluster.set_pod(one)
        cluster.remove_pod("default", one.metadata.name)


def usual(counts: dict[int, int]) -> list[Pod]:
    """Pods that ask for so many hundredths of a card, so often."""
    return [share(f"past-{size}-{i}", size, cpu=1) for size, n in counts.items() for i in range(n)]


SIZES = {81: 5, 65: 3, 47: 6, 32: 4, 16: 2}
STRATEGIES = [
    # what is shown, the queue's strategy, the gang's, the card that a third goes to beside a half
    ("by default it opens a card rather than spoil a half", None, None, 0),
    ("a queue that fills", "Binpack", None, 1),
    ("a job of its own mind", "Binpack", "Fragmentation", 0),
    ("a job that fills", "Fragmentation", "Binpack", 1),
    ("what looks after fragmentation by its queue", "Fragmentation", None, 0),
]


@pytest.mark.parametrize(
    ("of_queue", "of_gang", "card"), [c[1:] for c in STRATEGIES], ids=[c[0] for c in STRATEGIES]
)
def test_the_strategy_is_the_jobs_or_else_its_queues(
    of_queue: str | None, of_gang: str | None, card: int
) -> None:
    cluster = Cluster()
    cluster.set_node(node("a", gpus=2))
    cluster.set_queue(queue("q", strategy=of_queue))
    come_and_go(cluster, usual(SIZES))
    cluster.set_pod(share("there", 47, on="a", held="1", cpu=1))
    cluster.set_gang(gang("g", minMember=1, queue="q", strategy=of_gang))
    cluster.set_pod(share("g-0", 32, gang="g", cpu=1))
    Decider(cluster).decide(0.0)
    assert indices_of(cluster.pods["default", "g-0"].gpus) == (card,)


def test_a_queues_strategy_reaches_single_pods_when_it_changes() -> None:
    cluster = Cluster()
    cluster.set_node(node("a", gpus=2, cpu=4))
    come_and_go(cluster, usual(SIZES))
    cluster.set_queue(queue("q", strategy="Fragmentation"))
    cluster.set_pod(share("there", 47, on="a", held="1", cpu=1))
    late = share("late", 32, cpu=4, labels={"lockstep.dev/queue": "q"})
    cluster.set_pod(late)
    decider = Decider(cluster)
    decider.decide(0.0)
    cluster.set_queue(queue("q", strategy="Binpack"))
    cluster.remove_pod("default", "there")
    cluster.set_pod(share("there-again", 47, on="a", held="1", cpu=0))
    decider.decide(1.0)
    assert indices_of(cluster.pods["default", "late"].gpus) == (1,)


@pytest.mark.parametrize(("sharing", "where"), [(False, "full"), (True, "small")])
def test_one_gpu_spares_whole_nodes_once_shares_are_used(sharing: bool, where: str) -> None:
    cluster = Cluster()
    cluster.set_node(node("small", gpus=8, cpu=4))
    cluster.set_node(node("full", gpus=8))
    cluster.set_pod(pod("cpus", cpu=32, on="full"))
    come_and_go(cluster, [pod(f"large-{i}", gpus=8, cpu=64) for i in range(5)])
    come_and_go(cluster, usual({50: 1}) if sharing else [])
    cluster.set_pod(pod("one", gpus=1, cpu=1))
    Decider(cluster).decide(0.0)
    assert cluster.pods["default", "one"].node == where


def test_memory_is_weighed_by_the_memory_of_each_card() -> None:
    cluster = Cluster()
    for name, memory in (("small", 16_000), ("large", 80_000)):
        cluster.set_node(node(name, gpus=2, devices=[{"index": 0, "memory": memory}]))
    cluster.set_pod(share("p", 10, 8_000))
    view = GpuMilliView(cluster.table)
    rows = np.array([cluster.table.rows["small"], cluster.table.rows["large"]])
    asked = cluster.pods["default", "p"].shape.share
    assert asked is not None
    left = view.left(rows, cluster.table.free[:, rows], asked)
    assert left.max(axis=1).tolist() == [500, 900]
    demand = view.demand(cluster.past.usual())
    assert demand.sizes() == {500: 0.5, 100: 0.5}


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["share", "whole", "cpu", "end", "node", "gone", "cordon"]),
        st.integers(0, 9),
        st.sampled_from([10, 30, 50, 80, 100]),
        st.sampled_from([0, 100, 600]),
        st.integers(1, 2),
    ),
    max_size=30,
)


def replay(cluster: Cluster, events: list[tuple[str, int, int, int, int]]) -> Iterable[None]:
    """Let things happen one by one; after each, everything has been decided."""
    decider = Decider(cluster)
    for kind, number, compute, memory, count in events:
        name, at = f"p{number}", f"n{number % 3}"
        devices = [{"index": i, "memory": 1000} for i in range(1 + number % 4)]
        if kind == "end":
            cluster.remove_pod("default", name)
        elif kind == "gone":
            cluster.remove_node(at)
        elif kind in ("node", "cordon"):
            more: dict[str, Any] = {"labels": {MODEL: "AB"[number % 2]}, "devices": devices}
            cluster.set_node(node(at, gpus=len(devices), cordoned=kind == "cordon", **more))
        elif ("default", name) not in cluster.pods:
            if kind == "share":
                cluster.set_pod(share(name, compute, memory, count, cpu=1))
            else:
                cluster.set_pod(pod(name, gpus=count if kind == "whole" else 0, cpu=2))
        decider.decide(0.0)
        yield


@settings(deadline=None)
@given(EVENTS)
def test_row_by_row_updates_equal_a_fresh_look(
    events: list[tuple[str, int, int, int, int]],
) -> None:
    cluster = Cluster()
    cluster.set_node(node("n0", gpus=4, devices=[{"index": i, "memory": 1000} for i in range(4)]))
    cluster.set_pod(share("first", 30))
    view, shapes = GpuMilliView(cluster.table), list[PodShape]()
    for _ in replay(cluster, events):
        _same(view.refresh(), GpuMilliView(cluster.table).nodes)
        shapes = [member.shape for member in cluster.pods.values()]
        for shape in shapes:
            kept = cluster.fits.of(shape)
            fresh = ShapeFit(cluster.table, shape, kept.preference).refresh()
            rows = np.flatnonzero(fresh.count)
            assert kept.count.tolist() == fresh.count.tolist()
            assert kept.liking[rows].tolist() == pytest.approx(fresh.liking[rows].tolist())
            assert (np.abs(kept._rating[rows]) < np.inf).all()


def _same(kept: Any, fresh: Any) -> None:
    for field in ("cpu", "memory", "milli", "idle", "whole", "model"):
        assert getattr(kept, field).tolist() == getattr(fresh, field).tolist(), field
    assert (kept.models, kept.extent) == (fresh.models, fresh.extent)


def test_what_is_supposed_is_judged_by_what_is_expected_now() -> None:
    cluster = Cluster()
    cluster.set_node(node("a", gpus=2))
    cluster.set_pod(share("there", 47, on="a", held="1"))
    come_and_go(cluster, usual(SIZES))
    shape = cluster.pods["default", "there"].shape
    now = cluster.fits.of(shape).liking.copy()
    supposed = WhatIf(cluster, [])
    row = cluster.table.rows["a"]
    assert supposed.fits.of(shape).liking[row] == now[row]
    supposed.vacate([cluster.pods["default", "there"]])
    assert supposed.fits.of(shape).liking[row] != now[row]
    assert cluster.fits.of(shape).liking[row] == now[row]


def test_no_rating_outweighs_a_wish() -> None:
    cluster = Cluster()
    cluster.set_node(node("a", gpus=8))
    cluster.set_node(node("b", gpus=8, soft=["slow"]))
    come_and_go(cluster, [*usual({50: 2}), *(pod(f"x{i}", gpus=8) for i in range(50))])
    cluster.set_pod(pod("there", gpus=7, on="b", held="0,1,2,3,4,5,6"))
    cluster.set_pod(share("late", 50))
    Decider(cluster).decide(0.0)
    assert cluster.pods["default", "late"].node == "a"
    liking = cluster.fits.of(cluster.pods["default", "late"].shape).liking
    assert abs(liking[cluster.table.rows["a"]]) <= BOUND


DAYS = st.lists(st.tuples(st.sampled_from([10, 30, 50]), st.integers(1, 28)), max_size=20)


@settings(deadline=None)
@given(DAYS, st.randoms())
def test_the_past_does_not_depend_on_the_order_of_events(days, random) -> None:
    shapes = shapes_of(10, 30, 50)
    first, second = DemandHistory(), DemandHistory()
    for size, day in days:
        first.note(shapes[size], f"2026-11-{day:02}T00:00:00Z")
    shuffled = list(days)
    random.shuffle(shuffled)
    for size, day in shuffled:
        second.note(shapes[size], f"2026-11-{day:02}T12:34:56Z")
    one, other = dict(first.usual()), dict(second.usual())
    assert one.keys() == other.keys()
    assert all(one[ask] == pytest.approx(other[ask]) for ask in one)


def shapes_of(*sizes: int) -> dict[int, PodShape]:
    cluster = Cluster()
    for size in sizes:
        cluster.set_pod(share(f"p{size}", size))
    return {size: cluster.pods["default", f"p{size}"].shape for size in sizes}


def test_a_restarted_scheduler_learns_from_the_existing_pods() -> None:
    pods = usual({50: 3, 20: 1})
    before, after = Cluster(), Cluster()
    for one in [*pods, *pods]:  # seen again, as after a gap in the watch
        before.set_pod(one)
    for one in reversed(pods):
        after.set_pod(one)
    assert list(before.past.usual()) == list(after.past.usual())


def test_old_pods_count_less_and_rare_ones_are_forgotten() -> None:
    past, shapes = DemandHistory(), shapes_of(10, 20)
    shape = shapes[10]
    past.note(shape, "2026-01-01T00:00:00Z")
    past.note(shapes[20], "2026-01-08T00:00:00Z")
    assert [weight for _, weight in past.usual()] == [2.0, 1.0]
    for year in (2027, 2031, 2070):
        past.note(shape, f"{year}-01-01T00:00:00Z")
    weights = dict(past.usual())
    assert weights[past_request(shape)] == pytest.approx(1.0)
    cluster = Cluster()
    come_and_go(cluster, [share(f"p{i}", 10, i + 1) for i in range(3 * MOST)])
    assert len(list(cluster.past.usual())) == MOST


def test_it_learns_anew_only_when_much_more_has_come() -> None:
    cluster = Cluster()
    cluster.set_node(node("a", gpus=2))
    cluster.set_pod(share("first", 50))
    seen = cluster.fits.preference(None)
    assert isinstance(seen, ForesightPreference)
    moments = []
    for number in range(100):
        cluster.set_pod(share(f"p{number}", 50))
        seen.keep_up()
        moments.append(seen.moment)
    assert len(set(moments)) < 20
    assert moments[0] != moments[-1]
