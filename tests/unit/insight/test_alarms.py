"""Alarms and board, held against a real promtool; they ask for nothing that is not exported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from lockstep.devices.core.fields import FIELDS
from lockstep.devices.core.rules import ALARMS, group
from lockstep.insight import alarms
from lockstep.insight.board import PANELS, board
from lockstep.insight.budget_watch import BudgetWatch
from lockstep.insight.metrics import AdviceMetrics
from lockstep.insight.waiting import WaitingMetrics
from lockstep.jobs.metrics import RankMetrics
from lockstep.runtime.metrics import Metrics
from lockstep.scheduler.metrics import Metrics as SchedulerMetrics

Json = dict[str, Any]
DOCS = Path(__file__).parents[3] / "docs/insight.md"
CARD = 'gpu="0",hostname="n"'
HELD = f'{{{CARD},namespace="s",pod="p",queue="q",lockstep_job="j"}}'
FREE = f"{{{CARD}}}"
OTHER = '{gpu="1",hostname="n"}'
POD = '{namespace="s",pod="p",job="j",local_rank="0"}'
JOB = '{namespace="s",lockstep_job="j",cause="few-workers"}'
BUDGET = '{kind="queue",name="q"}'
LED = "lockstep_leader"
# An hour of health, then an hour of the fault.
FIRES: dict[str, Json] = {
    "GPUBusyWithoutSteps": {
        f"DCGM_FI_DEV_GPU_UTIL{HELD}": "99x120",
        f"lockstep_training_last_step_timestamp_seconds{POD}": "0+60x60 3600x60",
    },
    "RankMayHang": {f"lockstep_training_suspect{POD}": "0x59 1x60"},
    "JobLosesTime": {f"lockstep_job_advice_gain_ratio{JOB}": "0.2x59 0.5x60"},
    "BudgetNearlySpent": {
        f"lockstep_budget_spent_ratio{BUDGET}": "0.7x59 0.9x60",
        f"lockstep_budget_warn_ratio{BUDGET}": "0.8x120",
    },
    "BudgetOverspent": {f"lockstep_budget_spent_ratio{BUDGET}": "0.9x59 1.1x60"},
    "GangsWaitBesideFreeGPUs": {
        "lockstep_scheduler_pending_gangs": "0x59 3x60",
        f"DCGM_FI_DEV_GPU_UTIL{FREE}": "0x120",
    },
    "GangOverdue": {
        'lockstep_gang_overdue_seconds{namespace="s",gang="g",queue="q"}': "0x60 0+60x59"
    },
    "QueueStarves": {'lockstep_queue_starving_seconds{queue="q"}': "60x60 1860+60x59"},
    "CheckpointStale": {
        'lockstep_job_checkpoint_age_ratio{namespace="s",lockstep_job="j"}': "0.5x59 4x60"
    },
    "GPUNodeLost": {f"DCGM_FI_DEV_FB_USED{FREE}": "9x59 _x60"},
    "GPUSeriesMissing": {
        f"DCGM_FI_DEV_FB_USED{FREE}": "9x59 _x60",
        f"DCGM_FI_DEV_FB_USED{OTHER}": "9x120",
    },
    "SchedulerMissing": {
        f'{LED}{{name="lockstep-scheduler"}}': "1x59 0x60",
        "lockstep_scheduler_pending_gangs": "0x120",
    },
    "ControllersMissing": {'lockstep_workqueue_depth{controller="trainingjob"}': "0x59 _x60"},
}
# What looks like the fault and is none.
SILENT: list[tuple[str, Json]] = [
    (
        "GPUBusyWithoutSteps",
        {
            f"DCGM_FI_DEV_GPU_UTIL{HELD}": "10x120",
            f"lockstep_training_last_step_timestamp_seconds{POD}": "0x120",
        },
    ),
    ("GPUBusyWithoutSteps", {f"DCGM_FI_DEV_GPU_UTIL{HELD}": "99x120"}),
    (
        "BudgetNearlySpent",
        {
            f"lockstep_budget_spent_ratio{BUDGET}": "0.9x120",
            f"lockstep_budget_warn_ratio{BUDGET}": "0.95x120",
        },
    ),
    ("RankMayHang", {f"lockstep_training_suspect{POD}": "0x59 1 0x60"}),
    (
        "GangsWaitBesideFreeGPUs",
        {"lockstep_scheduler_pending_gangs": "3x120", f"DCGM_FI_DEV_GPU_UTIL{HELD}": "9x120"},
    ),
    ("GPUNodeLost", FIRES["GPUSeriesMissing"]),
    ("QueueStarves", {'lockstep_queue_starving_seconds{queue="q"}': "0+60x29 _ 0+60x29"}),
    (
        "CheckpointStale",
        {'lockstep_job_checkpoint_age_ratio{namespace="s",lockstep_job="j"}': "1x59 4x5 1x50"},
    ),
    ("GPUSeriesMissing", FIRES["GPUNodeLost"]),
    (
        "SchedulerMissing",
        {
            "lockstep_scheduler_pending_gangs": "0x120",
            f'{LED}{{name="lockstep-scheduler",pod="a"}}': "1x59 0x60",
            f'{LED}{{name="lockstep-scheduler",pod="b"}}': "0x59 1x60",
        },
    ),
    # Without leader election no process says that it leads.
    ("ControllersMissing", {'lockstep_workqueue_depth{controller="trainingjob"}': "0x120"}),
]


def _promtool(tmp_path: Path, test: Json) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool (Debian: prometheus) is not installed")
    rules = {"groups": [group("lockstep-insight", alarms.ALARMS)]}
    (tmp_path / "rules.yaml").write_text(json.dumps(rules))
    suite = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m"}
    inputs = [{"series": name, "values": told} for name, told in test.pop("series").items()]
    tests = [{"interval": "1m", "input_series": inputs, **test}]
    (tmp_path / "test.yaml").write_text(json.dumps({**suite, "tests": tests}))
    return subprocess.run(
        [program, "test", "rules", str(tmp_path / "test.yaml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _firing(name: str, at: str) -> Json:
    expr = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
    return {"expr": expr, "eval_time": at, "exp_samples": [{"labels": "{}", "value": 1}]}


def _silent(name: str, at: str) -> Json:
    return {"eval_time": at, "alertname": name, "exp_alerts": []}


@pytest.mark.parametrize("name", [one.name for one in alarms.ALARMS])
def test_an_alarm_fires_for_its_fault_and_not_before(tmp_path: Path, name: str) -> None:
    test = {
        "series": FIRES[name],
        "alert_rule_test": [_silent(name, "58m")],
        "promql_expr_test": [_firing(name, "110m")],
    }
    done = _promtool(tmp_path, test)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "series"), SILENT)
def test_an_alarm_is_silent_for_what_is_no_fault(tmp_path: Path, name: str, series: Json) -> None:
    times = [_silent(name, f"{minute}m") for minute in range(10, 120, 10)]
    done = _promtool(tmp_path, {"series": series, "alert_rule_test": times})
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alarm_has_a_runbook() -> None:
    lines = DOCS.read_text().splitlines()
    heads = {line.removeprefix("### ").lower() for line in lines if line.startswith("### ")}
    for one in [*alarms.ALARMS, *(alarm for alarm in ALARMS if alarm.runbook)]:
        assert one.runbook == f"docs/insight.md#{one.name.lower()}"
        assert one.name.lower() in heads


def _exported() -> set[str]:
    registry = Metrics().registry
    SchedulerMetrics(registry)
    registry.register(AdviceMetrics([]))  # type: ignore[arg-type]
    registry.register(RankMetrics([], []))  # type: ignore[arg-type]
    registry.register(BudgetWatch([], None))  # type: ignore[arg-type]
    registry.register(WaitingMetrics([], []))
    return {field.name for field in FIELDS} | _names(registry)


def _names(registry: CollectorRegistry) -> set[str]:
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    found = set()
    for collector in list(registry._collector_to_names):
        told = collector.describe() if hasattr(collector, "describe") else collector.collect()
        for family in told:
            found |= {family.name + end for end in suffixes.get(family.type, ("",))}
    return found


QUERIES = [expr for panel in PANELS for expr, _ in panel.queries]
ASKED = [*QUERIES, *(one.condition for one in alarms.ALARMS)]


@pytest.mark.parametrize("expr", ASKED)
def test_a_query_names_only_series_that_are_exported(expr: str) -> None:
    bare = re.sub(r'"[^"]*"', '""', expr)
    named = set(re.findall(r"\b(?:lockstep|DCGM)_\w+", bare)) - {"lockstep_job"}
    assert named
    assert named <= _exported()


BOARD_SERIES = {
    **{f"{field.name}{HELD}": "1+1x20" for field in FIELDS},
    f"DCGM_FI_DEV_GPU_UTIL{OTHER}": "0x20",
    'lockstep_job_step_seconds{namespace="s",lockstep_job="j"}': "1x20",
    'lockstep_job_step_ratio{namespace="s",lockstep_job="j",phase="input"}': "0.1x20",
    f"lockstep_job_advice_gain_ratio{JOB}": "0.2x20",
    f"lockstep_training_last_step_timestamp_seconds{POD}": "0+60x20",
    "lockstep_scheduler_pending_gangs": "2x20",
    'lockstep_scheduler_attempts_total{result="placed"}': "0+3x20",
    'lockstep_scheduler_decision_seconds_bucket{le="0.1"}': "0+3x20",
    'lockstep_scheduler_decision_seconds_bucket{le="+Inf"}': "0+3x20",
    'lockstep_leader{name="lockstep-scheduler"}': "1x20",
    f"lockstep_budget_spent_ratio{BUDGET}": "0.5x20",
    'lockstep_workqueue_depth{controller="jobs"}': "0x20",
}


def test_no_query_of_the_board_is_empty(tmp_path: Path) -> None:
    told = [
        {
            "expr": f"count({expr.replace('$__rate_interval', '5m')}) > bool 0",
            "eval_time": "15m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for expr in QUERIES
    ]
    done = _promtool(tmp_path, {"series": dict(BOARD_SERIES), "promql_expr_test": told})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_board_has_a_panel_for_each_table_row() -> None:
    panels = json.loads(json.dumps(board()))["panels"]
    assert [one["title"] for one in panels] == [one.title for one in PANELS]
    places = {(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels}
    assert len(places) == len({one["id"] for one in panels}) == len(PANELS)
