"""Each moment of a simulation comes to an end, and nobody starts in it to be sent away in it."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.simulated_jobs import job, simulate

from lockstep.api.core import PriorityClass
from lockstep.api.queue import Queue
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import initial_cluster_of, view

GPU = "nvidia.com/gpu"
PRIORITIES = {"low": -10, "high": 10, "top": 100}
TREES: tuple[dict[str, str | None], ...] = (
    {"q": None, "r": None, "t": None},
    {"org": None, "q": "org", "r": "org", "t": None},
    {"org": None, "q": "org", "firm": None, "r": "firm", "t": "firm"},
)
ROUNDS = 60
"""Far more than any moment with so few jobs takes."""

Drawn = tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]


@st.composite
def scenarios(draw: st.DrawFn) -> Drawn:
    tree = draw(st.sampled_from(TREES))
    queues: dict[str, dict[str, Any]] = {}
    for name, parent in tree.items():
        spec: dict[str, Any] = {"parent": parent} if parent else {}
        spec["guaranteed"] = {GPU: draw(st.sampled_from([0, 2, 4, 8]))}
        most = draw(st.sampled_from([None, None, 8, 12]))
        if most is not None:
            spec["limit"] = {GPU: most}
        spec["weight"] = draw(st.sampled_from([1, 1, 5]))
        queues[name] = spec
    jobs = []
    for number in range(draw(st.integers(4, 12))):
        least, extra = draw(st.integers(1, 3)), draw(st.sampled_from([0, 0, 2, 4]))
        size = draw(st.sampled_from(["1", "2", "4", "50%"]))
        many = f"{least}..{least + extra}" if extra and size != "50%" else f"{least}"
        jobs.append(
            job(
                f"j{number}",
                f"{many}x{size}",
                at=draw(st.sampled_from([0, 0, 30, 100])),
                runs=draw(st.sampled_from([None, 30, 70, 300])),
                queue=draw(st.sampled_from(sorted(tree))),
                priorityClassName=draw(st.sampled_from(["low", "", "", "high", "top"])),
            )
        )
    return queues, jobs


def told(queues: dict[str, dict[str, Any]], *jobs: tuple[str, str, dict[str, Any]]) -> Drawn:
    """Return a scenario of gangs in queues."""
    texts = [(text.partition(": "), queue, more) for text, queue, more in jobs]
    return queues, [job(name, pods, queue=queue, **more) for (name, _, pods), queue, more in texts]


EXTRAS_BEFORE_A_CLAIM = told(
    {"q": {"guaranteed": {GPU: 8}}, "r": {}},
    ("claims: 2x4", "q", {"at": 30}),
    ("ends: 1x2", "q", {"runs": 70}),
    ("shares: 3x50%", "q", {"at": 30, "runs": 70}),
    ("grows: 3..7x2", "r", {}),
)
FREED_MORE_THAN_IS_NEEDED = told(
    {"org": {}, "q": {"parent": "org"}, "t": {}},
    ("grows: 2..4x4", "t", {}),
    ("low: 2x2", "t", {"runs": 70, "priorityClassName": "low"}),
    ("next: 2x2", "t", {}),
    ("other: 3x2", "q", {"runs": 70}),
)


PROMISE_BROKEN_BY_WHO_STARTS = told(
    {
        "org": {"guaranteed": {GPU: 8}, "limit": {GPU: 8}},
        "q": {"parent": "org"},
        "firm": {"guaranteed": {GPU: 8}},
        "r": {"parent": "firm", "guaranteed": {GPU: 8}},
        "t": {"parent": "firm", "guaranteed": {GPU: 8}},
    },
    ("j0: 2x50%", "org", {}),
    ("j1: 3x2", "t", {}),
    ("j2: 1..5x2", "r", {"runs": 70, "priorityClassName": "low"}),
    ("j3: 1..3x4", "q", {}),
    ("j4: 3..7x4", "r", {}),
    ("j5: 1..3x4", "r", {"runs": 30}),
    ("j6: 3x50%", "org", {"runs": 70}),
    ("j7: 1..5x4", "t", {"runs": 70, "priorityClassName": "high"}),
    ("j8: 2..4x1", "org", {"runs": 30}),
)

MEMBERS_ABOVE_WHERE_IT_WAS_PLANNED = told(
    {"q": {"guaranteed": {GPU: 8}}, "r": {}, "t": {"guaranteed": {GPU: 4}}},
    ("j0: 1x4", "t", {"at": 100, "runs": 30, "priorityClassName": "low"}),
    ("j1: 1x1", "q", {"priorityClassName": "low"}),
    ("j2: 1..5x1", "q", {"at": 100, "priorityClassName": "high"}),
    ("j3: 1..3x2", "q", {"runs": 70}),
    ("j4: 1x1", "q", {"priorityClassName": "low"}),
    ("j5: 1x1", "q", {"priorityClassName": "low"}),
    ("j6: 1x1", "q", {"priorityClassName": "low"}),
    ("j7: 2x4", "q", {"runs": 70}),
    ("j8: 1x4", "q", {"priorityClassName": "low"}),
    ("j9: 1x1", "r", {"at": 100, "runs": 30, "priorityClassName": "low"}),
)


@example(MEMBERS_ABOVE_WHERE_IT_WAS_PLANNED, 0)
@example(PROMISE_BROKEN_BY_WHO_STARTS, 0)
@example(EXTRAS_BEFORE_A_CLAIM, 0)
@example(FREED_MORE_THAN_IS_NEEDED, 0)
@settings(max_examples=examples(40), deadline=None)
@given(scenarios(), st.integers(0, 9))
def test_no_stay_lasts_zero_time_and_every_moment_ends(scenario: Drawn, seed: int):
    queues, jobs = scenario
    world = initial_cluster_of(parse("3x4"))
    world.queues = [view({"metadata": {"name": n}, "spec": q}, Queue) for n, q in queues.items()]
    world.priority_classes = [
        view({"metadata": {"name": name}, "value": value}, PriorityClass)
        for name, value in PRIORITIES.items()
    ]
    faults = Faults(node_mtbf=0.2, node_repair=0.02, gpu_mtbf=2.0) if seed % 2 else Faults()
    options = Options(seed=seed, faults=faults, until=1000, rounds=ROUNDS)
    result = simulate(world, *jobs, options=options)
    assert not [stay for stay in result.stays if stay.end == stay.start]
