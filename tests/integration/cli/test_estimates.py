"""When what waits will start, as a running control plane says it."""

from __future__ import annotations

from tests.support.waiting import eventually_sync


def test_a_waiting_job_learns_its_start_or_why_not(plane):
    whole = ("--simulated", "--gpus", "8", "--workers", "3")
    plane.ok("submit", "plain", "--name", "there", *whole, "--", "x")
    plane.eventually_bound("there", 3)
    plane.ok("submit", "plain", "--name", "waits", *whole, "--", "x")
    told = "no estimated start: gang there has no expected run time"
    eventually_sync(lambda: told in plane.ok("explain", "waits"))
    plane.ok("delete", "there")
    plane.ok("delete", "waits")
