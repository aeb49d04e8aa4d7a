"""How many replicas metrics and schedules ask for, and how fast the number changes."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.compat.kserve.metrics import Behavior, Direction, Limit, Metric, Period
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.scaling import SCHEDULE_ANNOTATION, Scaling, scaling
from lockstep.serve.core.metrics import Pace, at_least, scraped, utilization, wanted

BOX = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}


def metric(per: Any, target: float) -> Metric:
    return Metric("process", "cpu", target, per)


@pytest.mark.parametrize(
    ("per", "target", "reading", "current", "expected"),
    [
        ("utilization", 80, 160, 2, 2),
        ("utilization", 80, 174, 2, 2),  # within a tenth of the target
        ("utilization", 80, 200, 2, 3),
        ("utilization", 80, 40, 2, 1),
        ("average", 10, 95, 2, 10),
        ("average", 10, 0, 2, 0),
        ("value", 100, 250, 2, 5),
        ("value", 100, 105, 2, 2),
        ("average", 10, 95, 0, 0),
    ],
)
def test_a_reading_asks_for_replicas_by_kubernetes_rule(
    per: str, target: float, reading: float, current: int, expected: int
) -> None:
    assert wanted(metric(per, target), reading, current) == expected


def test_growth_is_bounded_by_the_widest_policy() -> None:
    pace = Pace()
    assert pace.paced(0.0, 1, 100, Behavior()) == 5
    pace.note(0.0, 1, 5)
    assert pace.paced(1.0, 5, 100, Behavior()) == 5
    assert pace.paced(16.0, 5, 100, Behavior()) == 10


def test_shrinking_waits_for_the_largest_number_of_its_window() -> None:
    pace, calm = Pace(), Behavior()
    assert pace.paced(0.0, 10, 10, calm) == 10
    assert pace.paced(100.0, 10, 2, calm) == 10
    assert pace.paced(299.0, 10, 4, calm) == 10
    assert pace.paced(301.0, 10, 2, calm) == 4


@pytest.mark.parametrize(("select", "expected"), [("Max", 6), ("Min", 9), ("Disabled", 10)])
def test_a_policy_says_how_fast_it_shrinks(select: Any, expected: int) -> None:
    limits = (Limit("Pods", 4, 60), Limit("Percent", 10, 60))
    behavior = Behavior(down=Direction(0.0, limits, select))
    assert Pace().paced(0.0, 10, 1, behavior) == expected


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0.1, 30)), max_size=40))
def test_the_number_never_passes_what_was_asked_for(asked: list[tuple[int, float]]) -> None:
    pace, now, current, seen = Pace(), 0.0, 5, [5]
    for target, pause in asked:
        now += pause
        seen.append(target)
        after = pace.paced(now, current, target, Behavior())
        pace.note(now, current, after)
        assert min(seen) <= after <= max(seen)
        current = after


def test_a_page_of_metrics_is_summed_by_name() -> None:
    text = '# HELP x\nx{a="1"} 2\nx{a="2"} 3\ny 1e3\nz NaN\nbroken\n'
    assert scraped(text) == {"x": 5.0, "y": 1000.0}
    assert utilization({"a": 0.25, "b": 0.5}, 0.5) == 150.0


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


DAY = Period("0 8 * * mon-fri", "30 18 * * mon-fri", 5)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-24T07:59", 0),
        ("2026-11-24T08:00", 5),
        ("2026-11-24T18:29", 5),
        ("2026-11-24T18:30", 0),
        ("2026-11-28T12:00", 0),  # a Saturday
    ],
)
def test_a_schedule_asks_for_replicas_in_its_time(now: str, expected: int) -> None:
    assert at_least([DAY], at(now)) == expected


def test_a_schedule_has_its_own_zone() -> None:
    tokyo = Period("0 8 * * *", "0 9 * * *", 3, "Asia/Tokyo")
    assert at_least([tokyo], at("2026-11-24T08:30", "Asia/Tokyo")) == 3
    assert at_least([tokyo], at("2026-11-24T08:30")) == 0


def asked(**spec: Any) -> Scaling:
    return scaling(spec, BOX, spec.pop("annotations", {}))


def external(**metric_: Any) -> dict[str, Any]:
    metric_ = {"serverAddress": "http://p:9090", "query": "up", **metric_}
    target = {"type": "AverageValue", "averageValue": "2"}
    return {"type": "External", "external": {"metric": metric_, "target": target}}


def test_each_way_to_name_a_metric_is_read() -> None:
    cpu = asked(scaleMetric="cpu", scaleTarget=50)
    assert [(m.name, m.target, m.per, m.base) for m in cpu.metrics] == [
        ("cpu", 50.0, "utilization", 0.5)
    ]
    assert cpu.metric == ""
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "2Gi"}}
    pod = {"metric": {"metricNames": ["vllm:num_requests_waiting"]}}
    pod["target"] = {"type": "AverageValue", "averageValue": "5"}  # type: ignore[assignment]
    found = asked(
        autoScaling={
            "metrics": [
                {"type": "Resource", "resource": memory},
                {"type": "PodMetric", "podmetric": pod},
                external(),
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
        }
    )
    assert [(m.kind, m.target) for m in found.metrics] == [
        ("process", float(2 << 30)),
        ("server", 5.0),
        ("prometheus", 2.0),
    ]
    assert found.behavior.down.stabilization == 5.0
    assert (asked().metric, asked(scaleMetric="rps").metric) == ("concurrency", "rps")


@pytest.mark.parametrize(
    ("spec", "field", "says"),
    [
        ({"scaleMetric": "cpus"}, "scaleMetric", "cpu"),
        ({"autoScaling": {"metrics": [{"type": "Moon"}]}}, "metrics[0].type", "PodMetric"),
        (
            {"autoScaling": {"metrics": [external(backend="graphite")]}},
            "metrics[0].external.metric.backend",
            "prometheus",
        ),
        (
            {"autoScaling": {"metrics": [external(serverAddress="p:9090")]}},
            "metrics[0].external.metric.serverAddress",
            "http address",
        ),
        (
            {"autoScaling": {"behavior": {"scaleUp": {"selectPolicy": "Most"}}}},
            "behavior.scaleUp.selectPolicy",
            "Max, Min",
        ),
        (
            {"autoScaling": {"behavior": {"scaleUp": {"policies": [{"type": "Pods"}]}}}},
            "scaleUp.policies[0].value",
            "from 1",
        ),
        ({"annotations": {SCHEDULE_ANNOTATION: "[{start: x}]"}}, "[0].replicas", "from 1"),
        (
            {"annotations": {SCHEDULE_ANNOTATION: "[{start: x, end: y, replicas: 1}]"}},
            "[0].start",
            "five fields",
        ),
    ],
)
def test_a_metric_that_cannot_be_is_named(spec: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(Problem) as found:
        asked(**spec)
    assert field in found.value.field
    assert says in str(found.value)


def test_a_share_needs_a_request_of_which_it_is_one() -> None:
    with pytest.raises(Problem, match="requests no cpu"):
        scaling({"scaleMetric": "cpu"}, {}, {})
