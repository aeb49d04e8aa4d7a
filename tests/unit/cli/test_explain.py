from __future__ import annotations

import pytest
from tests.support.shown_objects import NOW, at, event, gang, job, node, pod, queue

from lockstep.api.gang import Gang
from lockstep.api.start import Start, with_start
from lockstep.api.training import TrainingJob
from lockstep.cli.views import describe
from lockstep.cli.views.explain import explain_gang, explain_job, explain_pod
from lockstep.cli.views.table import Table
from lockstep.cli.views.top import summary, top_jobs, top_queues

WAITING = gang(
    "g1",
    spec={"minMember": 4, "queue": "research"},
    phase="Pending",
    message="needs 32 GPUs",
    members=3,
    position=2,
    waitingSince=at(200),
)


def test_a_gang_that_waits() -> None:
    assert explain_gang(WAITING, NOW) == [
        "gang g1 waits since 3m20s in queue research, 2nd in line",
        "  why: needs 32 GPUs",
        "  3 of its 4 pods exist so far",
    ]


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            {"estimatedStart": at(-320), "estimatedAt": at(4)},
            f"  estimated start: in 5m20s, at {at(-320)} (worked out 4s ago)",
        ),
        ({"estimatedStart": at(3)}, "  estimated start: now"),
        (
            {"noEstimate": "gang x has no expected run time"},
            "  no estimated start: gang x has no expected run time",
        ),
        (
            {"noEstimate": "too far", "notBefore": at(-7200)},
            f"  no estimated start, not before {at(-7200)}: too far",
        ),
    ],
)
def test_when_it_starts(told: dict[str, str], line: str) -> None:
    assert line in explain_gang(gang(phase="Pending", message="short", **told), NOW)


def test_a_gang_that_has_given_up() -> None:
    failed = gang(
        "g1", phase="Failed", message="not placed within 2h (maxWait)", remedy="a new one"
    )
    assert explain_gang(failed, NOW) == [
        "gang g1 has failed: not placed within 2h (maxWait)",
        "  what would change it: a new one",
    ]


def test_a_gang_that_is_placed() -> None:
    placed = gang("g1", phase="Running", bound=2, domain={"leaf": "leaf-3"})
    assert explain_gang(placed, NOW) == ["gang g1 is running on leaf-3: 2 bound of 2 needed"]


@pytest.mark.parametrize(
    ("remedy", "lines"),
    [("", []), ("room when others end", ["  what would change it: room when others end"])],
)
def test_what_would_change_it_is_what_the_scheduler_found(remedy: str, lines: list[str]) -> None:
    shown = gang(phase="Pending", reason="NotEnoughRoom", message="short", remedy=remedy, members=2)
    assert explain_gang(shown, NOW)[1:] == ["  why: short", *lines]


def test_a_warning_is_passed_on() -> None:
    warning = {"type": "QueueMissing", "status": "True", "message": "there is no queue research"}
    lines = explain_gang(gang(phase="Pending", conditions=[warning]), NOW)
    assert lines[-1] == "  note: there is no queue research"


@pytest.mark.parametrize(
    ("number", "word"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd"), (113, "113th")],
)
def test_places_in_line(number: int, word: str) -> None:
    lines = explain_gang(gang(phase="Pending", position=number), NOW)
    assert lines[0].endswith(f"{word} in line")


@pytest.mark.parametrize(
    ("shown", "its_gang", "lines"),
    [
        (
            job(phase="Succeeded", restarts=1, startTime=at(90), completionTime=at(30)),
            None,
            ["job digits is done: it ran for 1m with 1 restart"],
        ),
        (
            job(phase="Failed", message="exit code 3", restarts=4),
            None,
            [
                "job digits has failed after 4 restarts: exit code 3",
                "its logs: lockstep logs digits",
            ],
        ),
        (
            job(phase="Suspended", spec={"suspend": True}),
            None,
            [
                "job digits is suspended: it holds no place",
                "to go on: lockstep resume digits",
            ],
        ),
        (
            job(phase="Running", startTime=at(61)),
            gang(phase="Running", bound=2),
            ["job digits runs since 1m1s, no restart"],
        ),
        (
            job(phase="Restarting", message="worker-1 was killed"),
            gang(phase="Placed", bound=2),
            ["job digits is restarting", "  worker-1 was killed"],
        ),
        (job(), WAITING, ["job digits is pending", *explain_gang(WAITING, NOW)]),
    ],
)
def test_a_job(shown: TrainingJob, its_gang: Gang | None, lines: list[str]) -> None:
    assert explain_job(shown, its_gang, NOW) == lines


def test_a_pod_that_waits_and_one_that_runs() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "no node has 8 GPUs"}
    waiting = pod("p", labels={"lockstep.dev/gang": "g1"}, conditions=[condition])
    assert explain_pod(waiting, NOW) == [
        "pod p waits for a node since 1m",
        "  why: no node has 8 GPUs",
        "  it starts with its gang: lockstep explain gang/g1",
    ]
    assert explain_pod(pod("p", node="n", phase="Running"), NOW) == ["pod p is on node n, Running"]


@pytest.mark.parametrize(
    ("start", "line"),
    [
        (Start(at(-320)), f"  estimated start: in 5m20s, at {at(-320)}"),
        (Start(why="pod q never ends"), "  no estimated start: pod q never ends"),
        (
            Start(why="too far", not_before=at(-7200)),
            f"  no estimated start, not before {at(-7200)}: too far",
        ),
    ],
)
def test_a_pod_on_its_own_and_when_it_starts(start: Start, line: str) -> None:
    message = with_start("short", start)
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    assert explain_pod(pod("p", conditions=[condition]), NOW)[1:] == ["  why: short", line]


PODS = [
    pod("a-0", node="n-0", gpus=8, labels={"lockstep.dev/gang": "a"}, phase="Running"),
    pod("a-1", node="n-1", gpus=4, labels={"lockstep.dev/gang": "a"}, phase="Running"),
    pod("b-0", gpus=8, labels={"lockstep.dev/job": "b", "lockstep.dev/gang": "b"}),
    pod("lone", node="n-1", gpus=1, phase="Running"),
    pod("over", node="n-1", gpus=8, phase="Succeeded"),
]


def body(shown: Table) -> list[tuple[str, ...]]:
    return list(shown.rows)


def test_top_sums_up_by_cluster_queue_and_job() -> None:
    assert summary([node("n-0"), node("n-1")], PODS) == (
        "2 nodes, 13 of 16 GPUs used (81 %), 3 free"
    )
    gangs = [
        gang("a", spec={"minMember": 2, "queue": "research"}, phase="Running"),
        gang("b", spec={"minMember": 1, "queue": "research"}, phase="Pending"),
        gang("c", spec={"minMember": 1}, phase="Finished"),
    ]
    queues = [queue("research", spec={"limit": {"nvidia.com/gpu": 16}}), queue("default")]
    assert body(top_queues(queues, gangs, PODS)) == [
        ("default", "1", "-", "-", "0", "0"),
        ("research", "12", "-", "16", "1", "1"),
    ]
    assert body(top_jobs(PODS)) == [
        ("default", "a", "12", "0", "2", "0", "2"),
        ("default", "b", "0", "8", "0", "1", "0"),
        ("default", "lone", "1", "0", "1", "0", "1"),
    ]


def test_pages_show_facts_pods_conditions_and_events() -> None:
    condition = {"type": "Placed", "status": "False", "reason": "NoRoom", "message": "no room"}
    waiting = gang("g1", phase="Pending", message="no room", conditions=[condition])
    page = describe.describe_gang(waiting, PODS[:1], [event("Waits", "no room")], NOW)
    text = "\n".join(page)
    for part in ("Why:", "no room", "Conditions:", "NoRoom", "Pods:", "a-0", "Events:", "Waits"):
        assert part in text
    assert "Domain" not in text

    running = job(phase="Running", restarts=1, startTime=at(30))
    text = "\n".join(describe.describe_job(running, None, PODS[:1], [], NOW))
    for part in ("Framework:", "1 of at most 3", "Roles:", "worker", "Runtime:", "30s"):
        assert part in text
    assert "Events" not in text

    text = "\n".join(describe.describe_node(node("n-0"), PODS, [], NOW))
    assert "8 of 8" in text
    assert "a-1" not in text


def test_a_page_about_anything_is_yaml() -> None:
    page = describe.describe_any({"metadata": {"name": "x"}, "data": {"a": "1"}}, [], NOW)
    assert page == ["Name:  x", "data:", "  a: '1'"]
