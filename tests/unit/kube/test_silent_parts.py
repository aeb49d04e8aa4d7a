"""Which parts are said not to run, by what the cluster says of them."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api import timestamp
from lockstep.api.core import AnyObject, Lease, LeaseSpec
from lockstep.api.meta import ObjectMeta
from lockstep.kube.silent_parts import COMPONENT, absent, stopped, unheard

NOW = 1_000_000.0


def of(part: str, spec: dict[str, Any], status: dict[str, Any]) -> AnyObject:
    meta = ObjectMeta(name=f"lockstep-{part}", namespace="ours", labels={COMPONENT: part})
    return AnyObject(meta, spec=spec, status=status)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, ["no scheduler runs: 0 of 2 pods are ready"]),
        ({"readyReplicas": 1}, []),
        ({"readyReplicas": 2}, []),
    ],
)
def test_a_part_without_a_ready_pod_does_not_run(status: dict[str, Any], said: list[str]) -> None:
    assert [one.seen for one in stopped([of("scheduler", {"replicas": 2}, status)])] == said


@pytest.mark.parametrize(
    ("ready", "said"),
    [
        (0, ["no agent runs on 3 of 3 nodes"]),
        (2, ["no agent runs on 1 of 3 nodes"]),
        (3, []),
    ],
)
def test_a_part_of_nodes_runs_on_each_of_them(ready: int, said: list[str]) -> None:
    status = {"desiredNumberScheduled": 3, "numberReady": ready}
    assert [one.seen for one in absent([of("agent", {}, status)])] == said


@pytest.mark.parametrize(
    ("holder", "ago", "said"),
    [
        ("a", 3.0, []),
        ("a", 42.0, ["the leading scheduler was last heard of 42 s ago (Lease l)"]),
        ("", 42.0, []),  # given back: the next one takes it at once
    ],
)
def test_a_leader_that_falls_silent_is_named(holder: str, ago: float, said: list[str]) -> None:
    spec = LeaseSpec(holder, renew_time=timestamp.show(NOW - ago))
    lease = Lease(ObjectMeta(name="l"), spec)
    assert [one.seen for one in unheard([("scheduler", lease), ("controllers", None)], NOW)] == said


def test_a_warning_says_what_it_means_and_what_to_run() -> None:
    (one,) = stopped([of("router", {"replicas": 2}, {})])
    assert str(one) == (
        "no router runs: 0 of 2 pods are ready: no inference service answers until one runs. "
        "`kubectl -n ours describe pods -l app.kubernetes.io/component=router` shows why"
    )
