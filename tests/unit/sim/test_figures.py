import numpy as np
import pytest
from tests.support.simulated_jobs import job

from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import initial_cluster_of
from lockstep.sim.input.jobs import read_jobs
from lockstep.sim.result import chart
from lockstep.sim.result.figures import CLASSES, fairness, figures, size_classes


def shown(spec, *jobs, weights=None, options=None):
    world = initial_cluster_of(parse(spec))
    simulation = Simulation(world, read_jobs(jobs, world), options or Options())
    result = simulation.run()
    return figures(result, simulation.cluster.table, weights or {}), result


@pytest.mark.parametrize(
    ("use", "weights", "expected"),
    [
        ({}, {}, 1.0),
        ({"a": 5.0}, {}, 1.0),
        ({"a": 5.0, "b": 5.0}, {}, 1.0),
        ({"a": 5.0, "b": 0.0}, {}, 0.5),
        ({"a": 6.0, "b": 2.0}, {"a": 3, "b": 1}, 1.0),
    ],
)
def test_fairness_is_even_use_by_weight(use, weights, expected):
    assert fairness(use, weights) == expected


@pytest.mark.parametrize(
    ("gpus", "name"),
    [(0, "no GPU"), (1, "1 GPU"), (2, "2 to 8"), (8, "2 to 8"), (9, "9 to 64"), (513, "over 512")],
)
def test_jobs_are_classed_by_their_gpus(gpus, name):
    assert CLASSES[size_classes(np.array([gpus]))[0]] == name


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param("3x8", 0.5, id="what never fits got nothing"),
        pytest.param("1x0", 1.0, id="what wants no GPUs lacks none"),
    ],
)
def test_fairness_counts_each_queue_that_wanted_gpus(size, expected):
    found, _ = shown(
        "2x8", job("a", "2x8", runs=100, queue="a"), job("b", size, runs=10, queue="b")
    )
    assert found["fairness"] == expected


def test_work_counts_by_gpus_however_the_pods_differ():
    elastic = job("a", "1..4x8", runs=100)
    launcher = job("a", "1x0")["spec"]["groups"][0] | {"name": "launcher"}
    elastic["spec"]["groups"].append(launcher)
    found, _ = shown("2x8", elastic)  # with two of its four workers all the time
    assert found["goodput"] == 100.0


FAILING = Faults(node_mtbf=20.0, node_repair=1.0, restart_cost=0, checkpoint_interval=1800)


@pytest.mark.parametrize("runs", [200_000, None])
def test_a_fresh_start_loses_work_even_if_the_job_ends(runs):
    options = Options(faults=FAILING, until=150_000)
    found, result = shown("4x8", job("a", "4x8", runs=runs), options=options)
    assert found["seconds"] == 150_000
    worked = {stay.start: stay.end for stay in result.stays if stay.end is not None}
    behind = [(end - start) % 1800 for start, end in worked.items()]
    assert found["restarts"] == len(behind) > 5
    assert found["lostGpuHours"] == pytest.approx(32 * sum(behind) / 3600, abs=1e-3)


def test_who_goes_on_without_a_member_has_not_begun_again():
    options = Options(faults=FAILING, until=150_000)
    found, _ = shown("4x8", job("a", "1..4x8"), options=options)
    assert found["nodeFaults"] > 5
    assert (found["restarts"], found["lostGpuHours"], found["goodput"]) == (0, 0.0, 100.0)


def test_allocation_is_held_over_usable_gpu_time():
    found, _ = shown("2x8", job("a", "1x8", runs=100), job("b", "1x4", runs=50))
    assert found["allocation"] == pytest.approx(100 * (800 + 200) / 1600)
    assert found["fragmentation"] == pytest.approx(100 * 200 / 600, abs=1e-3)


def test_memory_and_compute_shares_on_one_card_lose_nothing():
    half = job("m", "2x50%", runs=100)
    resources = half["spec"]["groups"][0]["template"]["spec"]["containers"][0]["resources"]
    resources["limits"] = resources["requests"] = {"lockstep.dev/gpu-memory": "40Gi"}
    found, _ = shown("1x1", half, job("c", "2x50%", runs=100))
    assert found["goodput"] == pytest.approx(100.0)
    assert found["allocation"] == pytest.approx(100.0)


def test_shares_count_as_fractions_of_gpus():
    found, result = shown(
        "1x4", job("a", "2x50%", runs=100), job("b", "1x25%", runs=100), job("c", "1x1", runs=100)
    )
    assert found["allocation"] == pytest.approx(100 * 2.25 / 4)
    assert found["fragmentation"] == 100.0
    assert found["goodput"] == pytest.approx(100.0)
    assert sum(found["gpuHoursByQueue"].values()) == pytest.approx(225 / 3600, abs=1e-3)
    assert result.samples[-1].used == 0


@pytest.mark.parametrize(
    ("strategy", "nodes"), [("Binpack", 1), ("Spread", 4), ("Fragmentation", 1)]
)
def test_the_strategy_of_jobs_that_name_none(strategy, nodes):
    world = initial_cluster_of(parse("4x4"))
    works = read_jobs([job("a", "4x50%", runs=10)], world, strategy)
    result = Simulation(world, works, Options()).run()
    assert len({stay.node for stay in result.stays}) == nodes


def test_waits_tell_who_waited_and_who_never_started():
    found, _ = shown(
        "1x8",
        job("a", "1x8", runs=100, queue="x"),
        job("b", "1x8", runs=10, queue="y"),
        job("c", "2x8", runs=10, queue="y"),
    )
    assert found["waitsByQueue"]["x"]["mean"] == 0
    assert found["waitsByQueue"]["y"] == {
        "jobs": 2,
        "neverStarted": 1,
        "mean": 100,
        "p50": 100,
        "p95": 100,
        "max": 100,
    }
    assert found["stillWaiting"] == 1


def test_where_nobody_started_there_is_no_wait_to_tell():
    found, _ = shown("1x8", job("huge", "2x8", queue="x"))
    times = {key: found["waitsByQueue"]["x"][key] for key in ("mean", "p50", "p95", "max")}
    assert times == dict.fromkeys(times)


def test_span_is_the_narrowest_tier_that_held_the_job():
    found, _ = shown(
        "4x8,nodes-per-leaf=2,leaves-per-spine=2",
        job("inside", "2x4", runs=10),
        job("leaf", "2x8", at=20, runs=10),
        job("spine", "4x8", at=40, runs=10),
        job("alone", "1x8", at=60, runs=10),
    )
    assert found["span"] == {"node": 1, "leaf": 1, "spine": 1, "cluster": 0}


def test_the_charts_are_well_formed_and_show_every_class():
    from xml.etree import ElementTree

    found, result = shown("2x8", job("a", "1x8", runs=100), job("b", "2x8", runs=50))
    drawn = chart.svg(result)
    text = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314 - our own
    assert "2 to 8" in text and "9 to 64" in text
    assert drawn in chart.page(result, found)


def words(drawn):
    from xml.etree import ElementTree

    return [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]  # noqa: S314 - our own


def test_a_chart_names_jobs_not_started_and_its_cut():
    _, result = shown("2x8", job("a", "1x8", runs=100), job("b", "9x8", runs=50))
    text = words(chart.svg(result))
    assert "0 of 1 started" in text and "1 jobs" in text
    assert any("asked for (red line, up to 80)" in told for told in text)


@pytest.mark.parametrize("runs", [0.5, 1, 7, 100, 5000, 40_000, 86_400, 10_000_000])
def test_the_axes_of_a_chart_stand_at_round_numbers(runs):
    _, result = shown("3x8", job("a", "3x8", runs=runs), job("b", "1x8", runs=runs))
    numbers = {float(text) for text in words(chart.svg(result)) if text.replace(".", "").isdigit()}
    digits = {f"{number:e}".partition("e")[0].rstrip("0").rstrip(".") for number in numbers}
    assert len(numbers) > 6
    assert all(len(found) <= 3 for found in digits), numbers
