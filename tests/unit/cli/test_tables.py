from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.shown_objects import NOW, at, event, gang, job, node, pod, queue

from lockstep.api.gang import Gang
from lockstep.api.node_policy import NodePolicy
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.cli.views import amounts, catalog
from lockstep.cli.views.describe import describe_job, describe_pod, policy_nodes
from lockstep.cli.views.gangs import gang_table, minimum
from lockstep.cli.views.jobs import job_table
from lockstep.cli.views.nodes import node_table
from lockstep.cli.views.pods import event_table, pod_table, state
from lockstep.cli.views.queues import queue_table
from lockstep.cli.views.table import Column, Table, cell, natural, plain, table


def rows(shown: Table, *columns: str) -> list[tuple[str, ...]]:
    names = [column.name for column in shown.columns]
    return [tuple(row[names.index(column)] for column in columns) for row in shown.rows]


WAITING = gang(
    phase="Pending", message="needs 16 GPUs under one leaf; leaf-3 has most: 12", members=2
)


@pytest.mark.parametrize(
    ("shown", "its_gang", "expected"),
    [
        (job(), None, ("Pending", "0/2", "-")),
        (job(message="its queue is missing"), None, ("Pending", "0/2", "its queue is missing")),
        (job(message="refused"), WAITING, ("Pending", "0/2", "refused")),
        (
            job(),
            WAITING,
            ("Pending", "0/2", "needs 16 GPUs under one leaf; leaf-3 has most: 12"),
        ),
        (job(), gang(phase="Pending"), ("Pending", "0/2", "not looked at yet")),
        (job(phase="Running"), gang(phase="Running", bound=2), ("Running", "2/2", "-")),
        (
            job(phase="Restarting", message="worker-1 was killed by SIGKILL"),
            gang(phase="Running", bound=2),
            ("Restarting", "2/2", "worker-1 was killed by SIGKILL"),
        ),
        (job(phase="Succeeded", message="done"), None, ("Succeeded", "-", "-")),
        (job(phase="Failed", message="exit code 3"), WAITING, ("Failed", "-", "exit code 3")),
    ],
)
def test_a_job_says_why_it_does_not_run(
    shown: TrainingJob, its_gang: Gang | None, expected: tuple[str, ...]
) -> None:
    gangs = {("default", "digits"): its_gang} if its_gang else {}
    assert rows(job_table([shown], gangs, NOW), "Phase", "Gang", "Why") == [expected]


def test_jobs_come_oldest_first_with_their_ages() -> None:
    jobs = [job("young", age=30), job("old", age=7200), job("middle", age=90)]
    shown = job_table(jobs, {}, NOW)
    assert rows(shown, "Name", "Age") == [("old", "2h"), ("middle", "1m30s"), ("young", "30s")]


def test_a_namesake_job_in_another_namespace_has_its_own_gang() -> None:
    shown = job_table([job()], {("other", "digits"): gang(phase="Running", bound=2)}, NOW)
    assert rows(shown, "Gang") == [("0/2",)]


def test_gangs_that_wait_come_last_in_their_order() -> None:
    gangs = [
        gang("b", phase="Pending", position=2),
        gang("a", phase="Pending", position=1),
        gang("c", phase="Running", bound=2, domain={"spine": "s0", "leaf": "l3"}),
    ]
    shown = gang_table(gangs, NOW)
    assert rows(shown, "Name", "Bound", "Domain", "Position") == [
        ("c", "2/2", "s0/l3", "-"),
        ("a", "0/2", "-", "1"),
        ("b", "0/2", "-", "2"),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minMember": 3}, 3),
        ({"groups": [{"name": "a", "min": 1}, {"name": "b", "min": 4, "desired": 9}]}, 5),
        ({}, 0),
    ],
)
def test_how_many_members_a_gang_needs(spec: dict[str, Any], expected: int) -> None:
    assert minimum(gang(spec=spec or {"queue": "q"})) == expected


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"estimatedStart": at(-320)}, "5m20s"),
        ({"estimatedStart": at(3)}, "now"),
        ({"notBefore": at(-7200)}, "not before 2h"),
        ({"noEstimate": "gang x has no expected run time"}, "-"),
        ({"notBefore": at(-7200), "phase": "Running"}, "-"),
    ],
)
def test_when_it_starts_as_far_as_is_known(told: dict[str, str], shown: str) -> None:
    waiting = gang(**{"phase": "Pending", **told})
    assert rows(gang_table([waiting], NOW), "Starts in") == [(shown,)]
    jobs = job_table([job(phase="Pending")], {("default", "digits"): waiting}, NOW)
    assert rows(jobs, "Starts in") == [(shown,)]


def test_a_job_shows_what_its_roles_ask_of_the_topology() -> None:
    role = {"name": "worker", "template": {"spec": {}}, "topology": {"preferred": "leaf"}}
    page = describe_job(job(spec={"roles": [role]}), None, [], [], NOW)
    heading, shown = page[page.index("Roles:") + 1 :][:2]
    assert (heading.split()[-1], shown.split()[-1]) == ("TOPOLOGY", "leaf?")


def test_nodes_count_what_pods_hold() -> None:
    pods = [
        pod("runs", node="n-2", gpus=2, phase="Running"),
        pod("done", node="n-2", gpus=4, phase="Succeeded"),
        pod("waits", gpus=8),
    ]
    nodes = [node("n-10"), node("n-2"), node("n-3", ready=False, spec={"unschedulable": True})]
    shown = node_table(nodes, pods, NOW)
    assert rows(shown, "Name", "Status", "GPUs used", "GPUs free", "Pods") == [
        ("n-2", "Ready", "2/8", "6", "1"),
        ("n-3", "NotReady,Cordoned", "0/8", "8", "0"),
        ("n-10", "Ready", "0/8", "8", "0"),
    ]


def test_a_node_without_gpus_shows_none() -> None:
    assert rows(node_table([node("n", gpus=0)], [], NOW), "GPUs used", "GPUs free") == [("-", "-")]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"cpu": 0, "nvidia.com/gpu": 0}),
        (
            {"containers": [{"resources": {"requests": {"cpu": "500m"}}}] * 2},
            {"cpu": 1000, "nvidia.com/gpu": 0},
        ),
        (
            {
                "containers": [{"resources": {"requests": {"cpu": 1}}}],
                "initContainers": [{"resources": {"requests": {"cpu": 3}}}],
                "overhead": {"cpu": "250m"},
            },
            {"cpu": 3250, "nvidia.com/gpu": 0},
        ),
        (
            {
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": 4}}}],
                "initContainers": [
                    {"resources": {"requests": {"cpu": 1}}, "restartPolicy": "Always"},
                    {"resources": {"requests": {"cpu": 2}}},
                ],
            },
            {"cpu": 3000, "nvidia.com/gpu": 4},
        ),
    ],
)
def test_what_a_pod_asks_for(spec: dict[str, Any], expected: dict[str, int]) -> None:
    shown = pod("p", spec=spec)
    assert {name: amounts.requested(shown, name) for name in expected} == expected


def ended(code: int, signal: int = 0, reason: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "signal": signal, "reason": reason}}
    return {"containerStatuses": [{"name": "main", "state": state}]}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Running"}, "Running"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed", **ended(3)}, "Error (exit code 3)"),
        ({"phase": "Failed", **ended(137, 9, "Killed")}, "Killed (signal 9)"),
        ({"phase": "Succeeded", **ended(0)}, "Succeeded"),
        (
            {
                "phase": "Pending",
                "containerStatuses": [
                    {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                ],
            },
            "ImagePullBackOff",
        ),
    ],
)
def test_what_a_pod_is_doing(status: dict[str, Any], word: str) -> None:
    assert state(pod("p", **status)) == word
    assert rows(pod_table([pod("p", **status)], NOW), "State") == [(word,)]


def test_events_come_latest_last_and_count() -> None:
    shown = event_table([event("Placed", "ok", age=1), event("Waits", "no", count=4, age=9)], NOW)
    assert rows(shown, "Last seen", "Reason", "Object", "Message") == [
        ("9s", "Waits", "gang/g1", "no (x4)"),
        ("1s", "Placed", "gang/g1", "ok"),
    ]


def test_queues_show_their_shares() -> None:
    spec = {"guaranteed": {"nvidia.com/gpu": 8, "cpu": 4}, "weight": 2, "parent": "root"}
    shown = queue_table([queue("research", spec=spec, pending=3)], NOW)
    assert rows(shown, "Name", "Parent", "Weight", "Guaranteed", "Limit", "Waiting") == [
        ("research", "root", "2", "cpu=4 gpu=8", "-", "3")
    ]


def test_a_table_as_text() -> None:
    shown = table(
        ("Name", Column("GPUs", number=True), Column("Why", wide=True)),
        [("a", 8, "x"), ("longer", None, "y")],
    )
    assert plain(shown.narrow()) == "NAME     GPUS\na           8\nlonger      -"
    assert plain(shown, shown.rows[:1]) == "a           8   x"


@given(st.text())
def test_a_cell_never_steers_the_terminal(text: str) -> None:
    shown = cell(text)
    assert shown.isprintable()
    assert shown


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=20))
def test_names_are_ordered_by_their_numbers(numbers: list[int]) -> None:
    names = sorted((f"node-{n}" for n in numbers), key=natural)
    assert names == [f"node-{n}" for n in sorted(numbers)]


def test_a_watch_prints_changed_rows_but_not_aged_ones() -> None:
    before = job_table([job("a"), job("b")], {}, NOW)
    after = job_table([job("a"), job("b", phase="Running"), job("c")], {}, NOW + 100)
    changed = catalog.changed(before, after)
    assert [row[1] for row in changed] == ["b", "c"]


def test_the_page_of_a_pod_tells_its_devices():
    held = {"lockstep.dev/gpus": "0,1", "lockstep.dev/nics": "2", "lockstep.dev/numa": "0"}
    page = describe_pod(pod("p", annotations=held), [], NOW)
    shown = {line.split(":")[0]: line.split(":")[1].strip() for line in page if ":" in line}
    assert (shown["GPUs"], shown["NICs"], shown["NUMA node"]) == ("0,1", "2", "0")


def test_a_policys_page_counts_the_nodes_of_each_tier() -> None:
    leaves = {"first": ["l1", "l2"], "again": ["l2"], "rest": ["l3"]}
    tiers = [
        {
            "name": tier,
            "selector": {"matchExpressions": [{"key": "leaf", "operator": "In", "values": named}]},
        }
        for tier, named in leaves.items()
    ]
    policy = convert({"metadata": {"name": "p"}, "spec": {"tiers": tiers}}, NodePolicy)
    nodes = [node("a", leaf="l1"), node("b", leaf="l2"), node("c", leaf="l3"), node("d")]
    assert [line.split() for line in policy_nodes(policy, nodes)[3:]] == [
        ["first", "2"],
        ["again", "0"],
        ["rest", "1"],
    ]
