"""Who may use a queue: its team, those whom it names, and those of the queues above it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lockstep.api.queue import Queue
from lockstep.api.queue_access import refusal, remedy, rule_of

RED = {"lockstep.dev/team": "red"}
TREE: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "default": ({"allowed": {"namespaces": ["sandbox"]}}, {}),
    "open": ({}, {}),
    "red": ({"parent": "open"}, RED),
    "red-night": ({"parent": "red"}, {}),
    "red-shared": ({"allowed": {"namespaces": ["guest"]}}, RED),
    "research": ({"allowed": {"namespaceSelector": {"matchLabels": {"kind": "research"}}}}, {}),
    "part": ({"parent": "research"}, {}),
    "people": ({"allowed": {"users": ["ana"], "groups": ["night-shift"]}}, {}),
    "nobody": ({"allowed": {}}, {}),
    "all": ({"allowed": {"namespaceSelector": {}}}, {}),
    "wrong": ({"allowed": {"namespaceSelector": {"matchLabels": {"no key": "x"}}}}, {}),
    "loop": ({"parent": "pool"}, {}),
    "pool": ({"parent": "loop"}, {}),
}
QUEUES = {
    name: msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": spec}, Queue)
    for name, (spec, labels) in TREE.items()
}
SPACES = {"red": RED, "blue": {"lockstep.dev/team": "blue"}, "lab": {"kind": "research"}}


@pytest.mark.parametrize(
    ("queue", "let_in"),
    [
        ("default", "sandbox"),
        ("open", "red blue lab guest sandbox"),
        ("missing", "red blue lab guest sandbox"),
        ("red", "red"),
        ("red-night", "red"),
        ("red-shared", "red guest"),
        ("research", "lab"),
        ("part", "lab"),
        ("people", ""),
        ("nobody", ""),
        ("all", "red blue lab guest sandbox"),
        ("wrong", ""),
        ("loop", "red blue lab guest sandbox"),
    ],
)
def test_namespaces_that_may_use_a_queue(queue: str, let_in: str) -> None:
    rule = rule_of(queue, QUEUES)
    spaces = ("red", "blue", "lab", "guest", "sandbox")
    found = [one for one in spaces if rule is None or rule.lets(one, SPACES.get(one, {}))]
    assert found == let_in.split()


@pytest.mark.parametrize(
    ("user", "groups", "may"),
    [("ana", (), True), ("ben", ("night-shift",), True), ("ben", ("day-shift",), False)],
)
def test_users_and_groups_that_may_use_a_queue(
    user: str, groups: tuple[str, ...], may: bool
) -> None:
    rule = rule_of("people", QUEUES)
    assert rule is not None
    assert rule.names(user, groups) is may


def test_refusal_names_queue_namespace_and_who_may_change_it() -> None:
    rule = rule_of("red-shared", QUEUES)
    assert rule is not None
    assert refusal("red-shared", "blue", "ben") == (
        "user ben in namespace blue may not use queue red-shared"
    )
    told = remedy("red-shared", rule)
    assert "an entry in spec.queue.allowed of Team red" in told
    assert "who may update teams.lockstep.dev" in told
    assert "guest" not in told
