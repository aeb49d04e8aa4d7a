"""A job whose ranks fail while storage is away waits for it, and loses no restart."""

from __future__ import annotations

import pytest

from lockstep.api.meta import ObjectMeta
from lockstep.api.node_health import Finding
from lockstep.api.timestamp import parse, show
from lockstep.api.training import TrainingJob, TrainingJobSpec, TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs.job_state import Seen
from lockstep.jobs.storage import QUIET, REASON, away, held, wait

NOW = parse("2026-01-01T00:10:00Z")


def seen(ago: float, action: str = "pause_job") -> Seen:
    finding = Finding(cause="x", class_="storage", action=action, last=show(NOW - ago))
    job = TrainingJob(
        metadata=ObjectMeta(name="j"), spec=TrainingJobSpec(framework="pytorch", roles=[])
    )
    return Seen(job, findings={"n1": [finding]})


@pytest.mark.parametrize(
    ("ago", "action", "nodes"),
    [(1, "pause_job", ["n1"]), (QUIET + 1, "pause_job", []), (1, "observe", [])],
    ids=["now", "quiet since", "another finding"],
)
def test_storage_is_away_where_a_node_says_so(ago: float, action: str, nodes: list[str]) -> None:
    assert away(seen(ago, action), NOW) == nodes


def test_ranks_wait_for_quiet_and_use_up_no_restart() -> None:
    status = wait(TrainingJobStatus(generation=3), ["n1"], "rank 0 ended", NOW)
    assert (status.restarts, status.generation) == (0, 4)
    assert status.retry_at == show(NOW + QUIET)
    found = cond.find(status, cond.RESTARTING)
    assert found is not None and (found.reason, "n1" in found.message) == (REASON, True)
    later = NOW + QUIET
    assert held(seen(0), status, NOW) == status, "it is not due"
    assert held(seen(0), status, later) == status, "it has been quiet"
    again = held(seen(-QUIET + 5), status, later)
    assert again.retry_at == show(later + QUIET), "it is away still"
    other = cond.put(status, cond.RESTARTING, True, cond.Why("RanksAnew", ""), NOW)
    assert held(seen(-QUIET + 5), other, later) == other
