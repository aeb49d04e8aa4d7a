"""A new revision where no room is spare: played to its end on a node of so many places."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import Pod
from lockstep.api.wire import convert
from lockstep.serve.core.rollout import OneByOne, one_by_one, told

Json = dict[str, Any]
OLD, NEW = "old", "new"


def pod(name: str, *, ready: bool = False, placed: bool = True) -> Pod:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    if not placed:
        conditions.append({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"})
    return convert(
        {"metadata": {"name": name}, "status": {"phase": "Pending", "conditions": conditions}}, Pod
    )


def served(count: int, name: str) -> list[Pod]:
    return [pod(f"{name}-{number}", ready=True) for number in range(count)]


@pytest.mark.parametrize(
    ("new", "old", "record", "expected"),
    [
        ([], 2, {}, None),
        ([pod("n")], 2, {}, None),
        ([pod("n", placed=False)], 0, {}, None),
        ([pod("n", placed=False)], 2, {}, ({NEW: 1, OLD: 1}, {OLD: 100})),
        ([pod("n")], 1, {"revision": NEW}, ({NEW: 1, OLD: 1}, {OLD: 100})),
        ([pod("n")], 1, {"revision": "other"}, None),
        (served(1, "n"), 1, {"revision": NEW}, ({NEW: 2, OLD: 0}, {NEW: 100})),
        (served(2, "n"), 0, {"revision": NEW}, None),
    ],
)
def test_without_spare_room_replicas_are_replaced_one_at_a_time(
    new: list[Pod],
    old: int,
    record: Json,
    expected: tuple[dict[str, int], dict[str, int]] | None,
) -> None:
    found = one_by_one(NEW, OLD, 2, record, new=new, before=served(old, "o"))
    assert (found and (found.wanted, found.traffic.weights)) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_full_node_takes_no_more_and_ends_with_new(count: int) -> None:
    old, new, record, seen = served(count, "o"), [pod("n-0", placed=False)], Json(), []
    for _ in range(3 * count + 3):
        step: OneByOne | None = one_by_one(NEW, OLD, count, record, new=new, before=old)
        if step is None:
            break
        record = step.record
        seen.append(record["replaced"])
        assert sum(step.wanted.values()) == count
        assert sum(step.traffic.weights.values()) == 100
        old = old[: step.wanted[OLD]]
        places = count - len(old)
        ready = [one for one in new if one.status.conditions[0].status == "True"]
        new = [*ready, *([pod(f"n-{len(ready)}", ready=True)] if len(ready) < places else [])]
    assert (len(old), len(new)) == (0, count)
    assert seen == list(range(count))
    assert f"{count - 1} of {count}" in told(record)
