"""Commands, variables, and the downward API."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.pods import container, make

from lockstep.api.core import ConfigMap, Secret
from lockstep.api.meta import ObjectMeta
from lockstep.api.pipeline import STEP_ANNOTATION
from lockstep.api.wire import convert
from lockstep.nodes.process.downward import Place
from lockstep.nodes.process.environment import (
    Around,
    ConfigError,
    Sources,
    command,
    packages,
    referenced,
)
from lockstep.nodes.process.expansion import expand
from lockstep.nodes.process.images import Entry
from lockstep.nodes.process.spec import Pod

PLACE = Place("here", "127.0.0.1", "127.1.2.3", {"cpu": "8", "memory": "16Gi"})
SOURCES = Sources(
    {"c": convert({"metadata": {}, "data": {"A": "1", "bad key": "2", "B.x-y": "3"}}, ConfigMap)},
    {
        "s": convert(
            {"metadata": {}, "data": {"P": base64.b64encode(b"pw").decode()}},
            Secret,
        )
    },
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("a$(A)b$(B)", "a1b2"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$", "$"),
        ("$()", "$()"),
        ("$(C)", "$(A)"),
    ],
)
def test_expansion(text: str, wanted: str) -> None:
    assert expand(text, {"A": "1", "B": "2", "C": "$(A)"}) == wanted


def run(base: dict[str, str] | None = None, sources: Sources = SOURCES, **fields: Any) -> Any:
    meta = {"labels": {"l": "v"}, "annotations": {"a": 'x"y'}}
    pod: Pod = make(containers=[container("main", **fields)], metadata=meta)
    return command(pod.spec.containers[0], Around(pod, sources, PLACE), base or {})


def ref(kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {kind: fields}}


@pytest.mark.parametrize(
    ("variable", "wanted"),
    [
        (ref("fieldRef", fieldPath="metadata.name"), "p"),
        (ref("fieldRef", fieldPath="metadata.namespace"), "n"),
        (ref("fieldRef", fieldPath="metadata.uid"), "u-1"),
        (ref("fieldRef", fieldPath="metadata.labels['l']"), "v"),
        (ref("fieldRef", fieldPath="metadata.annotations['a']"), 'x"y'),
        (ref("fieldRef", fieldPath="metadata.labels['none']"), ""),
        (ref("fieldRef", fieldPath="metadata.annotations"), 'a="x\\"y"'),
        (ref("fieldRef", fieldPath="spec.nodeName"), "here"),
        (ref("fieldRef", fieldPath="status.podIP"), "127.1.2.3"),
        (ref("fieldRef", fieldPath="status.hostIP"), "127.0.0.1"),
        (ref("resourceFieldRef", resource="limits.cpu"), "8"),
        (ref("resourceFieldRef", resource="requests.cpu"), "1"),
        (ref("resourceFieldRef", resource="requests.cpu", divisor="1m"), "300"),
        (ref("resourceFieldRef", resource="limits.memory", divisor="1Mi"), "512"),
        (ref("configMapKeyRef", name="c", key="A"), "1"),
        (ref("configMapKeyRef", name="c", key="none", optional=True), None),
        (ref("configMapKeyRef", name="none", key="A", optional=True), None),
        (ref("secretKeyRef", name="s", key="P"), "pw"),
    ],
)
def test_variable_from_elsewhere(variable: dict[str, Any], wanted: str | None) -> None:
    resources = {"requests": {"cpu": "300m"}, "limits": {"memory": "512Mi"}}
    assert run(env=[variable], resources=resources).env.get("X") == wanted


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"env": [ref("fieldRef", fieldPath="spec.nothing")]}, "unsupported fieldPath"),
        ({"env": [ref("resourceFieldRef", resource="cpu")]}, "unsupported resource"),
        ({"env": [ref("configMapKeyRef", name="x", key="A")]}, 'configmap "x" not found'),
        ({"env": [ref("configMapKeyRef", name="c", key="x")]}, "find key x in ConfigMap n/c"),
        ({"env": [ref("secretKeyRef", name="x", key="A")]}, 'secret "x" not found'),
        ({"envFrom": [{"secretRef": {"name": "x"}}]}, 'secret "x" not found'),
        ({"command": []}, "no command specified"),
        ({"command": ["a\0b"]}, "null character"),
    ],
)
def test_what_is_missing_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(**fields)


def test_later_variables_win_and_see_earlier_ones() -> None:
    found = run(
        base={"PATH": "/bin", "A": "base"},
        envFrom=[{"prefix": "C_", "configMapRef": {"name": "c"}}, {"configMapRef": {"name": "c"}}],
        env=[{"name": "Y", "value": "$(A)-$(C_A)-$(Z)"}, {"name": "Z", "value": "z"}],
        args=["$(Y)", "$(Z)"],
        workingDir="/w",
    )
    assert found.env == {
        "PATH": "/bin",
        "A": "1",
        "B.x-y": "3",
        "C_A": "1",
        "C_B.x-y": "3",
        "Y": "1-1-$(Z)",
        "Z": "z",
    }
    assert (found.argv, found.cwd) == (["true", "1-1-$(Z)", "z"], "/w")


def test_references_are_found_everywhere() -> None:
    pod = make(
        containers=[
            container(
                "a",
                env=[
                    ref("configMapKeyRef", name="m1", key="k"),
                    ref("secretKeyRef", name="s1", key="k"),
                ],
                envFrom=[{"configMapRef": {"name": "m2"}}, {"secretRef": {"name": "s2"}}],
            )
        ],
        volumes=[
            {"name": "x", "configMap": {"name": "m3"}},
            {"name": "y", "secret": {"secretName": "s3"}},
            {
                "name": "z",
                "projected": {
                    "sources": [{"configMap": {"name": "m4"}}, {"secret": {"name": "s4"}}]
                },
            },
        ],
    )
    assert referenced(pod) == ({"m1", "m2", "m3", "m4"}, {"s1", "s2", "s3", "s4"})


@pytest.mark.parametrize(
    ("annotations", "image", "beside"),
    [
        ({STEP_ANNOTATION: "main.a"}, None, True),
        ({STEP_ANNOTATION: "main.a"}, Entry(["x"]), True),
        ({STEP_ANNOTATION: "main.a"}, Entry(["x"], furnished=True), False),
        ({}, None, False),
    ],
)
def test_a_step_installs_nothing_into_the_nodes_environment(
    annotations: dict[str, str], image: Entry | None, beside: bool
) -> None:
    pod = Pod(metadata=ObjectMeta(name="a", uid="u", annotations=annotations))
    assert set(packages(pod, image)) == ({"PIP_TARGET", "PYTHONPATH"} if beside else set())
