"""Alarms about jobs, waiting and what is missing, over series that Lockstep exports."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from lockstep.devices.core.rules import Alarm

RUNBOOKS: Final = "docs/insight.md#"
"""Where the documentation has a section for each of them, under its name."""
_POD: Final = "{{ $labels.namespace }}/{{ $labels.pod }}"
_JOB: Final = "{{ $labels.namespace }}/{{ $labels.lockstep_job }}"
_BUDGET: Final = "{{ $labels.kind }} {{ $labels.name }}"
_SEEN: Final = "DCGM_FI_DEV_FB_USED"
"""What the agent says of every card, of any kind and in any mode."""

_ALARMS: Final = (
    Alarm(
        "GPUBusyWithoutSteps",
        'max by (namespace, pod) (DCGM_FI_DEV_GPU_UTIL{pod!=""}) >= 95 and on (namespace, pod) '
        "(time() - max by (namespace, pod) (lockstep_training_last_step_timestamp_seconds)) > 600",
        f"{_POD} keeps its GPU busy and has made no step for 10 min",
        "A collective probably waits for a rank: `lockstep diagnose JOB`.",
        severity="critical",
    ),
    Alarm(
        "RankMayHang",
        "max by (namespace, pod) (lockstep_training_suspect) == 1",
        f"a rank of {_POD} takes far longer over a step than over those before",
        "`lockstep diagnose JOB` says where its ranks stand.",
        lasting="2m",
    ),
    Alarm(
        "JobLosesTime",
        "max by (namespace, lockstep_job) (lockstep_job_advice_gain_ratio) > 0.3",
        f"{_JOB} loses {{{{ $value | humanizePercentage }}}} of its steps to one cause",
        "`lockstep advise JOB` names the cause, its line and what mends it.",
        lasting="30m",
    ),
    Alarm(
        "BudgetNearlySpent",
        "lockstep_budget_spent_ratio >= lockstep_budget_warn_ratio and "
        "lockstep_budget_spent_ratio <= 1",
        f"{_BUDGET} has spent {{{{ $value | humanizePercentage }}}} of the month's budget",
        "`lockstep cost --month` shows on what.",
        lasting="0s",
    ),
    Alarm(
        "BudgetOverspent",
        "lockstep_budget_spent_ratio > 1",
        f"{_BUDGET} has spent {{{{ $value | humanizePercentage }}}} of the month's budget",
        "`lockstep report --month` says what to save; a budget with `hold` holds new jobs.",
        lasting="0s",
        severity="critical",
    ),
    Alarm(
        "GangsWaitBesideFreeGPUs",
        "max(lockstep_scheduler_pending_gangs) > 0 and on () "
        'count(DCGM_FI_DEV_GPU_UTIL{pod=""}) > 0',
        "{{ $value }} gangs have waited for 30 min while GPUs were free",
        "`lockstep explain JOB` says why; `lockstep defrag JOB` what would have to move.",
        lasting="30m",
    ),
    Alarm(
        "GangOverdue",
        "max by (namespace, gang, queue) (lockstep_gang_overdue_seconds) > 1800",
        "{{ $labels.namespace }}/{{ $labels.gang }} still waits {{ $value | humanizeDuration }} "
        "after it was to start",
        "`lockstep explain JOB` says why: others may have come first, or run longer than stated.",
    ),
    Alarm(
        "QueueStarves",
        "max by (queue) (lockstep_queue_starving_seconds) > 1800",
        "queue {{ $labels.queue }} has less than its guaranteed share, and a gang of it has waited "
        "{{ $value | humanizeDuration }}",
        "`lockstep explain JOB` says what stands against it: reclaim, a topology, broken nodes.",
    ),
    Alarm(
        "CheckpointStale",
        "max by (namespace, lockstep_job) (lockstep_job_checkpoint_age_ratio) > 3",
        f"{_JOB} was last saved {{{{ $value | humanize }}}} intervals ago",
        "A fault now loses that work: `lockstep logs JOB` says whether saving fails.",
        lasting="10m",
    ),
    Alarm(
        "GPUNodeLost",
        f"count by (hostname) (last_over_time({_SEEN}[1h])) unless on (hostname) "
        f"count by (hostname) ({_SEEN})",
        "the {{ $value }} GPUs of {{ $labels.hostname }} are no longer reported",
        "Look at the node and its agent: `lockstep describe node/NAME`.",
        severity="critical",
    ),
    Alarm(
        "GPUSeriesMissing",
        f"(count by (hostname, gpu) (last_over_time({_SEEN}[1h])) unless on (hostname, gpu) "
        f"count by (hostname, gpu) ({_SEEN})) and on (hostname) count by (hostname) ({_SEEN})",
        "GPU {{ $labels.gpu }} of {{ $labels.hostname }} is gone while its neighbours report",
        "It may have fallen off the bus: look for Xid 79, then drain the node.",
        severity="critical",
    ),
    Alarm(
        "SchedulerMissing",
        "absent(lockstep_scheduler_pending_gangs) or "
        'max(lockstep_leader{name="lockstep-scheduler"}) == 0',
        "no scheduler leads: nothing gets a place",
        "`lockstep status`; look at the scheduler's log, and at whether Prometheus reaches it.",
        severity="critical",
    ),
    Alarm(
        "ControllersMissing",
        'absent(lockstep_workqueue_depth{controller="trainingjob"}) or '
        'max(lockstep_leader{name="lockstep-controllers"}) == 0',
        "no controllers lead: jobs are not started, and series of jobs are missing",
        "`lockstep status`; look at the controllers' log, and at whether Prometheus reaches them.",
        severity="critical",
    ),
)
ALARMS: Final = tuple(replace(one, runbook=f"{RUNBOOKS}{one.name.lower()}") for one in _ALARMS)
