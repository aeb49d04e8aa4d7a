from __future__ import annotations

from typing import Any

import pytest

from lockstep.apiserver.builtin import BUILTINS, Kind


def kind(name: str) -> Kind:
    return next(k for k in BUILTINS if k.kind == name)


def test_names_are_unique_per_group_and_version() -> None:
    names = [(k.group, k.version, k.plural) for k in BUILTINS]
    assert len(names) == len(set(names))


def test_both_event_groups_share_one_store() -> None:
    events = [k for k in BUILTINS if k.plural == "events"]
    assert {k.group for k in events} == {"", "events.k8s.io"}
    assert {k.storage for k in events} == {("", "events")}


@pytest.mark.parametrize(
    ("name", "obj", "expected"),
    [
        (
            "Pod",
            {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
            ("spec.nodeName", "n1"),
        ),
        ("Pod", {}, ("spec.hostNetwork", "false")),
        ("Pod", {"spec": {"hostNetwork": True}}, ("spec.hostNetwork", "true")),
        ("Node", {"spec": {}}, ("spec.unschedulable", "false")),
        ("Job", {"status": {"succeeded": 2}}, ("status.successful", "2")),
        ("Job", {}, ("status.successful", "0")),
        ("Event", {"source": {"component": "kubelet"}}, ("source", "kubelet")),
        ("Secret", {"metadata": {"name": "a", "namespace": "b"}}, ("metadata.namespace", "b")),
    ],
)
def test_field_selectors_see(name: str, obj: dict[str, Any], expected: tuple[str, str]) -> None:
    path, value = expected
    assert kind(name).field_values(obj)[path] == value


def test_cluster_scoped_objects_have_no_namespace_to_select() -> None:
    assert kind("Node").field_values({"metadata": {"name": "n"}}).keys() == {
        "metadata.name",
        "spec.unschedulable",
    }
