"""``lockstep queue explain``: the queue's amounts, its rivals and its waiting gangs."""

from __future__ import annotations

from typing import Any

from lockstep.api.gang import Gang
from lockstep.api.queue import Queue
from lockstep.api.wire import convert
from lockstep.cli.views.queue_explain import SHOWN, explain_queue

GPU = "nvidia.com/gpu"


def queue(name: str, status: dict[str, Any], **spec: Any) -> Queue:
    return convert({"metadata": {"name": name}, "spec": spec, "status": status}, Queue)


def gang(name: str, of: str, position: int, why: str = "") -> Gang:
    meta = {"name": name, "namespace": "ns", "creationTimestamp": "1970-01-01T00:00:00Z"}
    status = {"position": position, "reason": "OverQuota", "message": why, "phase": "Pending"}
    spec = {"minMember": 1, "queue": of}
    return convert({"metadata": meta, "spec": spec, "status": status}, Gang)


def test_amounts_rivals_and_what_waits_in_its_parts():
    org = queue(
        "org",
        {"used": {GPU: 24}, "borrowed": {GPU: 8}, "running": 2, "pending": 2, "share": "25.0%"},
        guaranteed={GPU: 16},
        limit={GPU: 32},
    )
    team = queue("team", {"pending": 1}, parent="org")
    other = queue("other", {"pending": 4, "share": "12.5%"})
    gangs = [
        gang("b", "team", 1, "8 GPUs short"),
        gang("a", "org", 1, "too"),
        gang("x", "other", 1),
    ]
    assert explain_queue(org, [org, team, other], gangs, 60.0) == [
        "queue org: 2 gangs run, 2 wait",
        "  nvidia.com/gpu: 24 used, 16 guaranteed, 8 borrowed, 32 limit",
        "  share above its guarantee, for weight 1: 25.0%",
        "  sibling queues with waiting gangs, smallest share first: other 12.5%, org 25.0%",
        "  1. ns/a, since 1m: too",
        "  1. ns/b, since 1m: 8 GPUs short",
    ]


def test_a_limit_that_limits_nothing_is_said():
    condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": "names gpu"}
    odd = queue("q", {"conditions": [condition]})
    assert explain_queue(odd, [odd], [], 0.0)[1:] == ["  note: names gpu"]


def test_many_are_counted_and_what_is_odd_is_said():
    condition = {"type": "Ready", "status": "False", "reason": "Misplaced", "message": "no parent"}
    odd = queue("q", {"conditions": [condition]}, parent="gone")
    gangs = [gang(f"g{i:03}", "q", i + 1) for i in range(SHOWN + 3)]
    lines = explain_queue(odd, [odd], gangs, 0.0)
    assert lines[:2] == ["queue q, part of gone: 0 gangs run, 0 wait", "  note: no parent"]
    assert len(lines) == 2 + SHOWN + 1
    assert lines[-1] == "  and 3 more"
