"""Results that are recalled are those that working them out again would give."""

from __future__ import annotations

import copy
from itertools import combinations
from typing import Any

import pytest

from lockstep.apiserver.builtin import defaults
from lockstep.apiserver.builtin.rules.metadata import validate_metadata
from lockstep.apiserver.builtin.rules.names import dns_label
from lockstep.apiserver.builtin.rules.pods import pod_spec
from lockstep.apiserver.patch import builtin, structured
from lockstep.apiserver.patch.managed import whole
from lockstep.apiserver.recent import Recent, content

POD = "io.k8s.api.core.v1.Pod"
UNLIKE: tuple[Any, ...] = (
    None,
    "",
    0,
    False,
    0.0,
    1,
    True,
    1.0,
    "1",
    [],
    {},
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
)


def pod(name: str) -> dict[str, Any]:
    env = [{"name": "SIZE", "value": "8"}, {"name": "RANK", "value": "0"}]
    worker = {
        "name": "worker",
        "image": "registry.example.org/train:1",
        "env": env,
        "resources": {"limits": {"cpu": "2000m", "memory": "1Gi"}},
        "ports": [{"containerPort": 29500}],
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108  of the container
    }
    volume = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    spec = {"hostname": name, "containers": [worker], "volumes": [volume]}
    meta = {"name": name, "labels": {"job": "train"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def prepared(name: str) -> dict[str, Any]:
    new = pod(name)
    defaults.prepare(POD, new, None)
    return new


@pytest.mark.parametrize(("one", "other"), [*combinations(UNLIKE, 2)])
def test_values_of_another_type_or_order_have_other_contents(one: Any, other: Any) -> None:
    assert content([one]) != content([other])


def test_equal_values_have_the_same_content() -> None:
    assert content(pod("a")) == content(copy.deepcopy(pod("a")))


@pytest.mark.parametrize("value", ["x" * 20_000, 2**70, "\ud800"], ids=["long", "huge", "half"])
def test_a_value_too_long_or_unwritable_has_no_content(value: Any) -> None:
    assert content([value]) is None


def test_results_are_limited_in_number_and_kept_by_scope() -> None:
    recent: Recent[int] = Recent()
    for number in range(10_000):
        recent.keep(b"%d" % number, number, "one")
    assert recent.get(b"9999", "one") == 9999
    assert recent.get(b"9999", "other") is None
    assert sum(recent.get(b"%d" % n, "one") is not None for n in range(10_000)) <= 256


def test_identical_pods_are_prepared_alike_and_share_nothing_mutable() -> None:
    first = prepared("a")
    kept = copy.deepcopy(first["spec"]["containers"])
    for name in ("b", "c"):
        again = prepared(name)
        assert again["spec"]["containers"] == kept
        assert again["spec"]["volumes"] == first["spec"]["volumes"]
        again["spec"]["containers"][0]["env"].clear()
        first["spec"]["containers"][0]["resources"].clear()


def test_a_right_specification_is_refused_for_its_own_names_alone() -> None:
    spec = prepared("a")["spec"]
    for _ in range(2):
        assert pod_spec(spec, "spec") == []
        (wrong,) = pod_spec({**spec, "hostname": "Not A Name"}, "spec")
        assert wrong.field == "spec.hostname"


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": {"job": "not a value"}},
        {"annotations": {"not a key": ""}},
        {"finalizers": ["not a name"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "", "uid": "1"}]},
        {"name": "Not A Name"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_metadata_that_was_right_is_refused_with_anything_wrong(wrong: dict[str, Any]) -> None:
    right = {"name": "a", "namespace": "default", "labels": {"job": "train"}}
    for _ in range(2):
        assert not list(validate_metadata(right, None, namespaced=True, name=dns_label))
        causes = validate_metadata({**right, **wrong}, None, namespaced=True, name=dns_label)
        assert [cause.field.split(".")[1] for cause in causes] == list(wrong)


def test_a_wrong_specification_is_refused_again_and_where_it_stands() -> None:
    spec = prepared("a")["spec"]
    spec["containers"][0]["volumeMounts"][0]["name"] = "missing"
    for path in ("spec", "spec", "spec.template.spec"):
        (wrong,) = pod_spec(spec, path)
        assert wrong.field == f"{path}.containers[0].volumeMounts[0].name"


def test_owners_of_fields_are_those_that_comparing_anew_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = builtin(POD)
    _, recalled = (whole(prepared(name), kind) for name in ("a", "b"))
    monkeypatch.setattr(structured, "_added_lists", Recent())
    assert recalled == whole(prepared("b"), kind)


def test_fields_of_an_item_belong_to_its_own_key() -> None:
    new = prepared("a")
    assert whole(new, builtin(POD)) is not None
    new["spec"]["containers"][0]["name"] = "other"
    fields = whole(new, builtin(POD))
    assert fields is not None
    assert [key for key in fields["f:spec"]["f:containers"] if key != "."] == ['k:{"name":"other"}']
