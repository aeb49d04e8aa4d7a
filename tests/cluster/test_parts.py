"""The parts of an installed Lockstep: none lacks a right; commands say when one does not run."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.support.on_cluster import OnCluster
from tests.support.rights import used
from tests.support.waiting import stretched
from tools.deploy.generate import IN_CHART

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.permissions.parts import PERMISSIONS

PARTS = tuple(part for part in IN_CHART if part not in ("simulate-nodes", "console"))
"""The console asks for nothing until a user opens it."""
WITHIN = 10.0


@pytest.mark.parametrize("part", PARTS)
def test_no_part_asks_for_what_it_may_not_have(cluster: OnCluster, part: str) -> None:
    lines = cluster.cluster.record.audit.read_text().splitlines()
    user = f"system:serviceaccount:{PERMISSIONS[part].home}:lockstep-{part}"
    got, refused = used((line for line in lines if user in line), user)
    assert got, f"{part} has asked for nothing: is it its account that it uses?"
    assert not refused


@pytest.fixture
def without_scheduler(cluster: OnCluster) -> Iterator[OnCluster]:
    """A cluster whose schedulers are gone."""
    scale = ("-n", SYSTEM_NAMESPACE, "scale", "deployment", "lockstep-scheduler")
    cluster.cluster.kubectl(*scale, "--replicas=0")
    yield cluster
    cluster.cluster.kubectl(*scale, "--replicas=2")
    rollout = ("rollout", "status", "deployment", "lockstep-scheduler", "--timeout=180s")
    cluster.cluster.kubectl("-n", SYSTEM_NAMESPACE, *rollout)


@pytest.mark.timeout(600)
def test_commands_say_that_no_scheduler_runs(without_scheduler: OnCluster) -> None:
    cluster = without_scheduler

    def run(*words: str) -> tuple[str, float]:
        started = time.monotonic()
        done = cluster.lockstep(*words)
        return done.stdout + done.stderr, time.monotonic() - started

    submit = ("submit", "plain", "--name", "j", "--image", "none", "--", "true")
    for words in (submit, ("list",), ("explain", "j")):
        said, took = run(*words)
        assert "no scheduler runs: 0 of 0 pods are ready" in said, words
        assert took < stretched(WITHIN)
