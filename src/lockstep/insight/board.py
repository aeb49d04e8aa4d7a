"""A Grafana board out of one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lockstep.api.wire import Json

_WIDE: Final = 12
_HIGH: Final = 8
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph: its queries with how each is named in the legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _shown(title: str, unit: str, *queries: tuple[str, str]) -> Panel:
    return Panel(title, unit, queries)


PANELS: Final = (
    _shown(
        "GPUs: held, and free",
        "none",
        ('count(DCGM_FI_DEV_GPU_UTIL{pod!=""})', "held"),
        ('count(DCGM_FI_DEV_GPU_UTIL{pod=""})', "free"),
    ),
    _shown(
        "GPU utilisation by node",
        "percent",
        ("avg by (hostname) (DCGM_FI_DEV_GPU_UTIL)", "{{hostname}}"),
    ),
    _shown(
        "GPU utilisation by queue",
        "percent",
        ('avg by (queue) (DCGM_FI_DEV_GPU_UTIL{queue!=""})', "{{queue}}"),
    ),
    _shown(
        "GPU memory used by job",
        "mbytes",
        (
            'sum by (namespace, lockstep_job) (DCGM_FI_DEV_FB_USED{lockstep_job!=""})',
            "{{namespace}}/{{lockstep_job}}",
        ),
    ),
    _shown(
        "Power by node", "watt", ("sum by (hostname) (DCGM_FI_DEV_POWER_USAGE)", "{{hostname}}")
    ),
    _shown(
        "Hottest GPU by node",
        "celsius",
        ("max by (hostname) (DCGM_FI_DEV_GPU_TEMP)", "{{hostname}}"),
    ),
    _shown(
        "Xids by node", "none", ("sum by (hostname) (DCGM_EXP_XID_ERRORS_COUNT)", "{{hostname}}")
    ),
    _shown("Time of a step", "s", ("lockstep_job_step_seconds", "{{namespace}}/{{lockstep_job}}")),
    _shown(
        "Part of a step that is no computing",
        "percentunit",
        ("lockstep_job_step_ratio", "{{namespace}}/{{lockstep_job}} {{phase}}"),
    ),
    _shown(
        "What advice would gain",
        "percentunit",
        ("lockstep_job_advice_gain_ratio", "{{namespace}}/{{lockstep_job}} {{cause}}"),
    ),
    _shown(
        "Time since the last step",
        "s",
        (
            "time() - min by (namespace, pod) (lockstep_training_last_step_timestamp_seconds)",
            "{{namespace}}/{{pod}}",
        ),
    ),
    _shown(
        "Budgets spent this month",
        "percentunit",
        ("max by (kind, name) (lockstep_budget_spent_ratio)", "{{kind}} {{name}}"),
    ),
    _shown("Gangs that wait", "none", ("max(lockstep_scheduler_pending_gangs)", "gangs")),
    _shown(
        "Decisions",
        "ops",
        (
            "sum by (result) (rate(lockstep_scheduler_attempts_total[$__rate_interval]))",
            "{{result}}",
        ),
    ),
    _shown(
        "Time of a decision, 99 of 100",
        "s",
        (
            "histogram_quantile(0.99, sum by (le) "
            "(rate(lockstep_scheduler_decision_seconds_bucket[$__rate_interval])))",
            "p99",
        ),
    ),
    _shown("Processes that lead", "none", ("max by (name) (lockstep_leader)", "{{name}}")),
    _shown(
        "Keys that wait for a controller",
        "none",
        ("sum by (controller) (lockstep_workqueue_depth)", "{{controller}}"),
    ),
)


def board() -> Json:
    """Return the board as Grafana imports it; the user chooses the data source."""
    return {
        "title": "Lockstep",
        "uid": "lockstep",
        "tags": ["lockstep", "gpu"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Source",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": [_panel(i, one) for i, one in enumerate(PANELS)],
    }


def _panel(i: int, one: Panel) -> Json:
    return {
        "id": i + 1,
        "title": one.title,
        "type": "timeseries",
        "datasource": _SOURCE,
        "gridPos": {"x": i % 2 * _WIDE, "y": i // 2 * _HIGH, "w": _WIDE, "h": _HIGH},
        "fieldConfig": {"defaults": {"unit": one.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + j),
                "datasource": _SOURCE,
                "expr": expr,
                "legendFormat": legend,
            }
            for j, (expr, legend) in enumerate(one.queries)
        ],
    }
