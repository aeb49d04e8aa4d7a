"""Who holds which cards."""

from __future__ import annotations

import pytest

from lockstep.api.core import Pod
from lockstep.api.wire import convert
from lockstep.devices.core.grants import NotEnough, assign
from lockstep.devices.core.holders import holders, shares


@pytest.mark.parametrize(
    ("wanted", "given", "found"),
    [
        ([("a", 1)], [3], {"a": [3]}),
        ([("a", 2), ("b", 1)], [5, 1, 2], {"a": [5, 1], "b": [2]}),
        ([("a", 1), ("sidecar", 0)], [4], {"a": [4], "sidecar": []}),
        ([("a", 0), ("b", 0)], [4], {"a": [4], "b": [4]}),
        ([("a", 1)], [], {"a": []}),
    ],
    ids=["one", "in order", "a sidecar gets none", "shares are seen by all", "none given"],
)
def test_containers_take_their_cards_in_order(
    wanted: list[tuple[str, int]], given: list[int], found: dict[str, list[int]]
) -> None:
    assert shares(wanted, given) == found


def pod(name: str, gpus: str, *, phase: str = "Running") -> Pod:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "annotations": {"lockstep.dev/gpus": gpus, "lockstep.dev/rank": "7"},
        "labels": {"lockstep.dev/queue": "q", "lockstep.dev/job": "j"},
    }
    asked = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"containers": [asked]}
    return convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Pod)


def test_holders_bear_queue_job_and_rank() -> None:
    [holder] = holders([pod("p", "2")])[2]
    assert holder.labels() == {
        "container": "main",
        "namespace": "default",
        "pod": "p",
        "queue": "q",
        "lockstep_job": "j",
        "rank": "7",
    }


def test_pods_that_are_over_hold_nothing() -> None:
    assert holders([pod("p", "2", phase="Succeeded"), pod("q", "3", phase="Failed")]) == {}


def test_an_annotation_that_cannot_be_read_holds_nothing() -> None:
    assert holders([pod("p", "first")]) == {}


def test_an_unknown_index_names_field_value_and_node() -> None:
    with pytest.raises(NotEnough, match=r"lockstep.dev/gpus is '9'; the node has no GPU 9"):
        assign("9", 1, range(4), [])
