from __future__ import annotations

from typing import Any

import pytest

from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.schema import Schema

Json = dict[str, Any]
POD = Schema.builtin("io.k8s.api.core.v1.Pod")


def pod(**spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"terminationGracePeriodSeconds": "x"},
            "json: cannot unmarshal string into Go struct field "
            "PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            {"containers": [{"name": 1}]},
            "json: cannot unmarshal number into Go struct field "
            "Container.spec.containers.name of type string",
        ),
        (
            {"containers": [{"ports": "80"}]},
            "json: cannot unmarshal string into Go struct field "
            "Container.spec.containers.ports of type []v1.ContainerPort",
        ),
        (
            {"nodeSelector": {"a": True}},
            "json: cannot unmarshal bool into Go struct field "
            "PodSpec.spec.nodeSelector of type string",
        ),
        (
            {"containers": [{"resources": {"limits": {"cpu": [1]}}}]},
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            {"priority": 2**31},
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority "
            "of type int32",
        ),
    ],
)
def test_what_cannot_be_read_is_named(spec: Json, said: str) -> None:
    assert POD.decoding_error(pod(**spec)) == said


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1.5, "memory": "1Gi"}}}]},
        {"containers": None, "nodeSelector": {"a": "b"}},
        {"nothing": {"known": 1}},
    ],
)
def test_what_can_be_read(spec: Json) -> None:
    assert POD.decoding_error(pod(**spec)) is None


def test_a_time_must_be_one() -> None:
    given = pod()
    given["metadata"]["creationTimestamp"] = "yesterday"
    said = POD.decoding_error(given)
    assert said is not None
    assert said.startswith('parsing time "yesterday"')


def test_unknown_fields_and_nulls_of_built_in_kinds_are_dropped() -> None:
    given = pod(containers=[{"name": "c", "imag": "x", "env": None}], nodeName=None, x=1)
    assert POD.unknown_fields(given) == ["spec.containers[0].imag", "spec.x"]
    POD.prune(given)
    assert given["spec"] == {"containers": [{"name": "c"}]}


def test_free_form_fields_are_kept() -> None:
    revision = Schema.builtin("io.k8s.api.apps.v1.ControllerRevision")
    given = {"metadata": {"name": "a"}, "revision": 1, "data": {"any": [1, {"thing": None}]}}
    assert revision.prune(given) == []
    assert given["data"] == {"any": [1, {"thing": None}]}


def test_metadata_of_custom_resources_must_be_readable() -> None:
    schema = Schema.parse({"type": "object"})
    assert schema.decoding_error({"metadata": {"labels": {"a": 1}}}) == (
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    )


@pytest.mark.parametrize("name", sorted({k.schema_name for k in BUILTINS}))
def test_every_built_in_kind_accepts_a_minimal_object(name: str) -> None:
    schema = Schema.builtin(name)
    minimal = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}}
    assert schema.decoding_error(minimal) is None
    assert schema.unknown_fields({**minimal, "nonsense": 1}) == ["nonsense"]
