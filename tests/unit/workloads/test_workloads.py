"""What workloads ask for next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api import timestamp
from lockstep.api.core import PODS, AnyObject, Node, Pod
from lockstep.api.wire import convert
from lockstep.runtime.actions import Change, Create, Delete
from lockstep.workloads.core import (
    cron_jobs,
    daemon_sets,
    deployments,
    replica_sets,
    stateful_sets,
)
from lockstep.workloads.core.plan import JOBS, REPLICA_SETS, Plan, World, amount

Json = dict[str, Any]
NOW = timestamp.parse("2026-03-10T10:30:30Z")
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}


def made(name: str = "a", status: Json | None = None, meta: Json | None = None, **spec: Any) -> Any:
    body = {
        "selector": {"matchLabels": {"app": "a"}},
        "template": TEMPLATE,
        **spec,
    }
    metadata = {"name": name, "namespace": "n", "uid": "u", "generation": 1, **(meta or {})}
    return convert({"metadata": metadata, "spec": body, "status": status or {}}, AnyObject)


def pod(name: str, *, ready: str = "", phase: str = "Running", **labels: str) -> Pod:
    said = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    meta = {"name": name, "uid": name, "labels": {"app": "a", **labels}}
    body = {"metadata": meta, "status": {"phase": phase, "conditions": said}}
    return convert(body, Pod)


def names(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the names of what is made, and of what is deleted."""
    makes = [one.body["metadata"]["name"] for one in plan.actions if isinstance(one, Create)]
    return makes, [one.name for one in plan.actions if isinstance(one, Delete)]


def test_a_replica_set_repeats_its_pods_until_they_are_seen() -> None:
    obj = made(replicas=3)
    first, _ = names(replica_sets.decide(obj, World(), NOW))
    again, _ = names(replica_sets.decide(obj, World(), NOW))
    assert first == again
    assert len(set(first)) == 3
    seen = World([pod(first[0])], names=frozenset(first[:1]))
    assert names(replica_sets.decide(obj, seen, NOW))[0] == first[1:]


@pytest.mark.parametrize(
    ("pods", "goes"),
    [
        ([pod("up", ready="2026-01-01T00:00:00Z"), pod("down")], "down"),
        ([pod("waits", phase="Pending"), pod("runs")], "waits"),
        (
            [pod("old", ready="2026-01-01T00:00:00Z"), pod("new", ready="2026-03-01T00:00:00Z")],
            "new",
        ),
    ],
)
def test_the_least_useful_pod_goes_first(pods: Sequence[Pod], goes: str) -> None:
    assert names(replica_sets.decide(made(replicas=1), World(pods), NOW))[1] == [goes]


@pytest.mark.parametrize(
    ("given", "up", "expected"),
    [("25%", True, 1), ("25%", False, 0), (2, True, 2), (None, True, 9)],
)
def test_percentages_are_rounded_as_kubernetes_rounds_them(
    given: object, up: bool, expected: int
) -> None:
    assert amount(given, 3, 9, up=up) == expected


def _set(name: str, image: str, size: int, available: int, age: int) -> Any:
    template = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": image}]}}
    status = {"replicas": size, "availableReplicas": available, "observedGeneration": 1}
    meta = {"creationTimestamp": f"2026-01-0{age}T00:00:00Z"}
    return made(name, status, meta, template=template, replicas=size)


def _sizes(plan: Plan) -> dict[str, int]:
    changes = [one for one in plan.actions if isinstance(one, Change)]
    return {
        one.name: one.patch["spec"]["replicas"]
        for one in changes
        if one.resource is REPLICA_SETS and "spec" in one.patch
    }


@given(
    wanted=st.integers(0, 6),
    bounds=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    counts=st.tuples(st.integers(0, 8), st.integers(0, 8)),
    dead=st.integers(0, 8),
)
def test_a_rollout_never_goes_beyond_its_bounds(
    wanted: int, bounds: tuple[int, int], counts: tuple[int, int], dead: int
) -> None:
    (surge, lack), (old, new) = bounds, counts
    rolling = {"maxSurge": surge, "maxUnavailable": lack}
    template = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "two"}]}}
    obj = made(replicas=wanted, template=template, strategy={"rollingUpdate": rolling})
    olds = _set("old", "one", old, max(0, old - dead), 1)
    news = _set("new", "two", new, new, 2)
    sizes = {"old": old, "new": new}
    after = {**sizes, **_sizes(deployments.decide(obj, World(sets=[olds, news]), NOW))}
    if after["new"] > new:
        assert after["old"] + after["new"] <= wanted + surge
    gone = old - after["old"]
    least = wanted - (lack if surge or lack else 1)
    working = max(0, old - dead) + new
    still = min(working, after["old"]) + min(new, after["new"])
    if gone > 0 and after["new"] == new:
        assert still >= min(working, least) or max(0, old - dead) + new - gone >= least


def test_recreation_ends_old_pods_before_new_ones_start() -> None:
    template = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "two"}]}}
    obj = made(replicas=2, template=template, strategy={"type": "Recreate"})
    running, new = _set("old", "one", 2, 2, 1), _set("new", "two", 0, 0, 2)
    assert _sizes(deployments.decide(obj, World(sets=[running, new]), NOW)) == {"old": 0}
    gone = _set("old", "one", 0, 0, 1)
    assert _sizes(deployments.decide(obj, World(sets=[gone, new]), NOW)) == {"new": 2}


def test_a_rollout_that_stands_still_is_told_after_its_deadline() -> None:
    old = {
        "type": "Progressing",
        "status": "True",
        "reason": "ReplicaSetUpdated",
        "message": 'ReplicaSet "new" is progressing.',
        "lastUpdateTime": timestamp.show(NOW - 50),
        "lastTransitionTime": timestamp.show(NOW - 50),
    }
    obj = made(
        status={"conditions": [old], "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1},
        template={**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "two"}]}},
        progressDeadlineSeconds=60,
    )
    world = World(sets=[_set("new", "two", 1, 0, 1)])
    before = deployments.decide(obj, world, NOW)
    assert before.again == 10
    after = deployments.decide(obj, world, NOW + 20).status["conditions"][0]
    assert (after["status"], after["reason"]) == ("False", "ProgressDeadlineExceeded")


def test_numbered_pods_come_one_by_one_and_leave_in_reverse() -> None:
    up = "2026-01-01T00:00:00Z"
    obj = made(replicas=3)
    assert names(stateful_sets.decide(obj, World(), NOW))[0][1:] == ["a-0"]
    waits = stateful_sets.decide(obj, World([pod("a-0")]), NOW)
    assert "a-1" not in names(waits)[0]
    goes_on = stateful_sets.decide(obj, World([pod("a-0", ready=up)]), NOW)
    assert "a-1" in names(goes_on)[0]
    three = [pod(f"a-{i}", ready=up) for i in range(3)]
    assert names(stateful_sets.decide(made(replicas=1), World(three), NOW))[1] == ["a-2"]
    parallel = made(replicas=3, podManagementPolicy="Parallel")
    together = names(stateful_sets.decide(parallel, World(), NOW))[0]
    assert {"a-0", "a-1", "a-2"} <= set(together)


def test_below_the_partition_nothing_changes() -> None:
    strategy = {"rollingUpdate": {"partition": 1}}
    obj = made(replicas=2, updateStrategy=strategy)
    up = "2026-01-01T00:00:00Z"
    old = {"controller-revision-hash": "a-old"}
    both = [pod("a-0", ready=up, **old), pod("a-1", ready=up, **old)]
    assert names(stateful_sets.decide(obj, World(both), NOW))[1] == ["a-1"]
    assert names(stateful_sets.decide(obj, World(both[:1]), NOW))[1] == []


@pytest.mark.parametrize(
    ("taints", "wanted"),
    [
        ([], 1),
        ([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}], 1),
        ([{"key": "gpu", "effect": "NoSchedule"}], 0),
        ([{"key": "gpu", "effect": "PreferNoSchedule"}], 1),
    ],
)
def test_daemons_keep_off_nodes_whose_taints_they_do_not_bear(
    taints: list[Json], wanted: int
) -> None:
    node = convert({"metadata": {"name": "n1"}, "spec": {"taints": taints}}, Node)
    plan = daemon_sets.decide(made(), World(nodes=[node]), NOW)
    assert plan.status["desiredNumberScheduled"] == wanted
    assert sum(one.resource is PODS for one in plan.actions) == wanted


@pytest.mark.parametrize(
    ("spec", "last", "name"),
    [
        ({"schedule": "*/5 * * * *"}, "2026-03-10T10:25:00Z", "10:30"),
        ({"schedule": "*/5 * * * *"}, "2026-03-10T10:30:00Z", ""),
        ({"schedule": "*/5 * * * *", "suspend": True}, "2026-03-10T10:00:00Z", ""),
        ({"schedule": "0 * * * *", "startingDeadlineSeconds": 60}, "2026-03-10T08:00:00Z", ""),
        ({"schedule": "0 9 * * *", "timeZone": "Europe/Berlin"}, "2026-03-09T09:00:00Z", "08:00"),
    ],
)
def test_a_cron_job_runs_the_newest_time_that_is_due(spec: Json, last: str, name: str) -> None:
    obj = made(status={"lastScheduleTime": last}, jobTemplate={"spec": {}}, **spec)
    plan = cron_jobs.decide(obj, World(), NOW)
    due = f"2026-03-10T{name}:00Z" if name else ""
    wanted = [f"a-{int(timestamp.parse(due)) // 60}"] if due else []
    assert names(plan)[0] == wanted
    assert plan.status.get("lastScheduleTime") == (due or last)


@pytest.mark.parametrize(
    ("policy", "creates", "deletes"), [("Allow", 1, 0), ("Forbid", 0, 0), ("Replace", 1, 1)]
)
def test_an_unfinished_run_counts_as_the_policy_says(
    policy: str, creates: int, deletes: int
) -> None:
    obj = made(
        status={"lastScheduleTime": "2026-03-10T10:25:00Z"},
        schedule="*/5 * * * *",
        concurrencyPolicy=policy,
        jobTemplate={"spec": {}},
    )
    made_now, gone = names(cron_jobs.decide(obj, World(jobs=[made("a-1")]), NOW))
    assert (len(made_now), len(gone)) == (creates, deletes)


def test_ended_runs_are_kept_as_many_as_wished() -> None:
    def ended(number: int, how: str) -> Any:
        condition = {"type": how, "status": "True"}
        start = f"2026-03-10T0{number}:00:00Z"
        return made(f"a-{how}-{number}", {"conditions": [condition], "startTime": start})

    jobs = [ended(n, how) for n in range(5) for how in ("Complete", "Failed")]
    obj = made(schedule="0 0 1 1 *", jobTemplate={}, suspend=True, successfulJobsHistoryLimit=2)
    gone = names(cron_jobs.decide(obj, World(jobs=jobs), NOW))[1]
    assert gone == [
        "a-Complete-0",
        "a-Complete-1",
        "a-Complete-2",
        *(f"a-Failed-{n}" for n in range(4)),
    ]


def test_a_schedule_that_is_none_is_refused_by_name() -> None:
    plan = cron_jobs.decide(made(schedule="soon", jobTemplate={}), World(), NOW)
    assert plan.refused.startswith("spec.schedule: ")
    assert not [one for one in plan.actions if one.resource is JOBS]


def test_pods_wait_in_the_queue_of_their_workload() -> None:
    label = {"kueue.x-k8s.io/queue-name": "team"}
    for one in (deployments, replica_sets, stateful_sets):
        obj = made(meta={"labels": label}, replicas=1)
        made_ = [a.body for a in one.decide(obj, World(), NOW).actions if isinstance(a, Create)]
        told = [b["metadata"]["labels"] for b in made_ if b["kind"] in ("Pod", "ReplicaSet")]
        assert [label.items() <= labels.items() for labels in told] == [True], one.__name__
