"""What ``explain --layout`` draws."""

from tests.support.drawn import draw
from tests.support.ranked_jobs import TWO_LEAVES, add_job

from lockstep.cli.views.layout import layout_lines
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.rank_layout import places_of, rank_layout
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

KEY = WorkloadKey("Gang", "default", "j")


def drawn() -> list[str]:
    cluster = draw(Cluster(), TWO_LEAVES)
    add_job(cluster, 8, 8, tensor=8, pipeline=2)
    Decider(cluster).decide(0.0)
    workload = cluster.workloads[KEY]
    found = rank_layout(cluster, workload, places_of(workload.members))
    assert found is not None
    return layout_lines(found, placed=True)


def test_the_drawing_names_each_node_with_ranks_and_cost():
    lines = drawn()
    assert lines[0] == "s1 / l1"
    assert lines[1].startswith("  ┌ a1 ──") and "┌ a2 ──" in lines[1]
    first, second = lines[2].split(" │ │ ")
    assert first.split() == [
        "│",
        "j-0:",
        "ranks",
        "0-7",
        "tensor",
        "0-7",
        "data",
        "0",
        "stage",
        "0",
    ]
    assert second.split()[:3] == ["j-1:", "ranks", "8-15"]
    assert len({len(line) for line in lines[1:4]}) == 1, "the boxes line up"


def test_the_bill_says_under_which_tier_the_groups_are():
    bill = {line.split()[0]: line.split() for line in drawn() if line}
    assert bill["tensor"] == ["tensor", "8", "8", "301", "GB", "668", "ms", "node"]
    assert bill["data"] == ["data", "16", "4", "26.2", "GB", "525", "ms", "leaf"]
    assert bill["pipeline"] == ["pipeline", "32", "2", "268", "MB", "10.8", "ms", "spine"]


def test_chance_costs_more_than_what_was_laid_out():
    assert drawn()[-1].startswith("communication a step: 1.2 s without overlap; in random order 1.")


def test_a_gang_without_parallelism_has_no_layout():
    cluster = draw(Cluster(), "s1/l1: a:8")
    add_job(cluster, 1, 8)
    workload = cluster.workloads[KEY]
    assert rank_layout(cluster, workload, {}) is None
