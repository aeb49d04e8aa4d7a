"""What is refused of a queue before it is sent, and what an update makes of its spec."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from tests.support.shown_objects import queue

from lockstep.cli.failure import BadInput
from lockstep.cli.load import problems
from lockstep.cli.queue_guard import check_place
from lockstep.cli.queue_options import Shares, in_place_of, merged, stated

GPU = "nvidia.com/gpu"
THERE = {
    "org": queue("org", spec={"limit": {GPU: 16}}),
    "team": queue("team", spec={"parent": "org"}),
}


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        ("q", {"parent": "team", "guaranteed": {GPU: 8}}, ""),
        ("q", {"parent": "gone"}, "queue q: its parent gone does not exist"),
        ("q", {"parent": "taem"}, "did you mean team?"),
        ("q", {"parent": "org", "guaranteed": {GPU: 17}}, "its parent org may use 16"),
        ("org", {"parent": "team"}, "it would be part of itself by way of team"),
        ("q", {"parent": "q"}, "it would be part of itself by way of q"),
        ("q", {"limit": {"gpu": 8}}, "did you mean nvidia.com/gpu?"),
        ("q", {"guaranteed": {GPU: 8}, "limit": {GPU: 4}}, "its limit lets it use 4"),
        ("q", {"weight": -1}, "weight"),
    ],
)
def test_what_cannot_be_kept_is_refused(name: str, spec: dict[str, Any], said: str) -> None:
    if not said:
        check_place(name, spec, THERE)
        return
    with pytest.raises(BadInput) as caught:
        check_place(name, spec, THERE)
    assert said in str(caught.value)


def test_a_file_with_an_unknown_resource_is_refused() -> None:
    obj = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"limit": {"gpu": 8}},
    }
    (said,) = problems(obj)
    assert (
        said == "spec: its limit names gpu, which no pod can ask for: did you mean nvidia.com/gpu?"
    )


def test_an_update_changes_named_fields_and_removes_empty_ones() -> None:
    change = stated(Shares(limit=["gpu=4", "cpu=none"], parent="", weight=3))
    assert change == {"parent": None, "weight": 3, "limit": {GPU: "4", "cpu": None}}
    before = {"parent": "org", "limit": {"cpu": 8, GPU: 8}, "lending": "Never"}
    assert merged(before, change) == {"weight": 3, "limit": {GPU: "4"}, "lending": "Never"}


@pytest.mark.parametrize(
    ("given", "lists", "labels"),
    [
        (["namespace:guest", "user:ana"], (["guest"], ["ana"], []), None),
        (["group:night", "labels:kind=lab"], ([], [], ["night"]), {"kind": "lab"}),
        (["none"], ([], [], []), None),
    ],
)
def test_allowed_takes_the_place_of_what_was_there(
    given: list[str], lists: tuple[list[str], ...], labels: dict[str, str] | None
) -> None:
    allowed = stated(Shares(allow=given))["allowed"]
    assert (allowed["namespaces"], allowed["users"], allowed["groups"]) == lists
    before = {"allowed": {"users": ["x"], "namespaceSelector": {"matchLabels": {"old": "1"}}}}
    patch = in_place_of({"allowed": allowed}, before)["allowed"]
    after = patch["namespaceSelector"] and {
        key: value for key, value in patch["namespaceSelector"]["matchLabels"].items() if value
    }
    assert after == labels
    assert merged(before, {"allowed": allowed})["allowed"] == allowed


@pytest.mark.parametrize("given", ["ana", "user:", "labels:kind", "team:red"])
def test_allowed_that_names_none_is_refused(given: str) -> None:
    with pytest.raises(typer.BadParameter, match="write namespace:NAME"):
        stated(Shares(allow=[given]))


def test_allowed_is_lifted_by_an_empty_text() -> None:
    assert stated(Shares(allow=[""])) == {"allowed": None}
