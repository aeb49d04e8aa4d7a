"""Which pods a node refuses, and which GPUs and limits it gives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.pods import container, make

from lockstep.api.wire import convert
from lockstep.devices.core.grants import NotEnough, assign
from lockstep.nodes.process.admission import Room, refuse, requests, unhonoured
from lockstep.nodes.process.cgroups import Limits, limits_of, settings
from lockstep.nodes.process.spec import Container

ROOM = Room(
    {"cpu": 4000, "memory": 8 << 40, "pods": 3000, "nvidia.com/gpu": 2000}, {"disk": "hdd"}, "here"
)


def affine(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ([{"matchExpressions": [expression("disk", "In", "ssd", "hdd")]}], True),
        ([{"matchExpressions": [expression("disk", "NotIn", "hdd")]}], False),
        ([{"matchExpressions": [expression("gpu", "Exists")]}], False),
        ([{"matchExpressions": [expression("gpu", "DoesNotExist")]}], True),
        (
            [
                {"matchExpressions": [expression("gpu", "Exists")]},
                {"matchExpressions": [expression("disk", "Exists")]},
            ],
            True,
        ),
        (
            [{"matchExpressions": [expression("disk", "Exists"), expression("gpu", "Exists")]}],
            False,
        ),
        ([{"matchFields": [expression("metadata.name", "In", "here")]}], True),
        ([{"matchFields": [expression("metadata.name", "In", "there")]}], False),
        ([{}], False),
    ],
)
def test_required_affinity(terms: list[dict[str, Any]], fits: bool) -> None:
    found = refuse(make(affinity=affine(*terms)), ROOM, [])
    assert (found.reason if found else None) == (None if fits else "NodeAffinity")


def asking(name: str = "main", **requests: str) -> dict[str, Any]:
    return container(name, resources={"requests": requests})


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"containers": [asking(cpu="1"), asking("b", cpu="500m")]}, 1500),
        ({"containers": [container("a", resources={"limits": {"cpu": "2"}})]}, 2000),
        ({"containers": [asking(cpu="1")], "initContainers": [asking("i", cpu="3")]}, 3000),
        (
            {
                "containers": [asking(cpu="1")],
                "initContainers": [
                    {**asking("s", cpu="1"), "restartPolicy": "Always"},
                    asking("i", cpu="3"),
                ],
            },
            4000,
        ),
        ({"containers": [asking(cpu="1")], "overhead": {"cpu": "250m"}}, 1250),
    ],
)
def test_request_of_a_pod(spec: dict[str, Any], wanted: int) -> None:
    assert requests(make(**spec))["cpu"] == wanted


@pytest.mark.parametrize(
    ("spec", "others", "reason"),
    [
        ({"containers": [asking(cpu="4")]}, 0, None),
        ({"containers": [asking(cpu="4001m")]}, 0, "OutOfcpu"),
        ({"containers": [asking(cpu="2500m")]}, 2, "OutOfcpu"),
        ({"containers": [asking(**{"nvidia.com/gpu": "3"})]}, 0, "OutOfnvidia.com/gpu"),
        ({"containers": [asking(**{"example.com/x": "1"})]}, 0, "OutOfexample.com/x"),
        ({}, 3, "OutOfpods"),
        ({"nodeSelector": {"disk": "hdd"}}, 0, None),
        ({"nodeSelector": {"disk": "ssd"}}, 0, "NodeAffinity"),
        ({"os": {"name": "windows"}}, 0, "PodOSNotSupported"),
        ({"volumes": [{"name": "v", "nfs": {"server": "s"}}]}, 0, "UnsupportedVolume"),
        ({"volumes": [{"name": "../v", "emptyDir": {}}]}, 0, "InvalidPod"),
        ({"metadata": {"name": "../../x"}}, 0, "InvalidPod"),
        (
            {"containers": [container("a", volumeMounts=[{"name": "v", "mountPath": "/a/../.."}])]},
            0,
            "InvalidPod",
        ),
    ],
)
def test_refusal(spec: dict[str, Any], others: int, reason: str | None) -> None:
    there = [make(containers=[asking(cpu="1")]) for _ in range(others)]
    found = refuse(make(**spec), ROOM, there)
    assert (found.reason if found else None) == reason
    assert found is None or (not found.admitted and found.message.startswith("Pod was rejected: "))


@pytest.mark.parametrize(
    ("spec", "root", "wanted"),
    [
        ({}, True, ""),
        ({"hostNetwork": True}, True, "hostNetwork"),
        ({"securityContext": {"runAsUser": 5}}, True, ""),
        ({"securityContext": {"runAsUser": 5}}, False, "runAsUser"),
        (
            {"containers": [container("a", securityContext={"privileged": True})]},
            True,
            "capabilities",
        ),
        (
            {"containers": [container("a", livenessProbe={"grpc": {"port": 1}})]},
            True,
            "gRPC probes",
        ),
    ],
)
def test_what_is_not_honoured_is_said(spec: dict[str, Any], root: bool, wanted: str) -> None:
    found = unhonoured(make(**spec), root=root)
    assert len(found) == bool(wanted)
    assert all(wanted in text for text in found)


@pytest.mark.parametrize(
    ("annotation", "wanted", "used", "given"),
    [
        ("", 2, [], [0, 1]),
        ("", 2, [0], [1, 2]),
        ("2,3", 2, [0], [2, 3]),
        ("", 4, [0], "4 GPUs requested, 3 of 4 are free"),
        ("3,4", 2, [], "the node has no GPU 4"),
        ("0,1", 2, [1], "GPU 1 is in use"),
        ("x", 1, [], "not a list"),
    ],
)
def test_gpus(annotation: str, wanted: int, used: list[int], given: list[int] | str) -> None:
    if isinstance(given, str):
        with pytest.raises(NotEnough, match=given):
            assign(annotation, wanted, range(4), used)
    else:
        assert assign(annotation, wanted, range(4), used) == given


@pytest.mark.parametrize(
    ("resources", "version", "wanted"),
    [
        ({}, 1, {}),
        (
            {"limits": {"cpu": "500m", "memory": "1Gi"}},
            1,
            {
                "cpu.cfs_period_us": "100000",
                "cpu.cfs_quota_us": "50000",
                "cpu.shares": "512",
                "memory.limit_in_bytes": str(1 << 30),
            },
        ),
        (
            {"limits": {"cpu": "2", "memory": "1G"}, "requests": {"cpu": "1"}},
            2,
            {"cpu.max": "200000 100000", "cpu.weight": "39", "memory.max": "1000000000"},
        ),
        ({"requests": {"cpu": "1m"}}, 1, {"cpu.shares": "2"}),
        ({"limits": {"cpu": "1m"}}, 2, {"cpu.max": "1000 100000", "cpu.weight": "1"}),
    ],
)
def test_limits(resources: dict[str, Any], version: int, wanted: dict[str, str]) -> None:
    found: Limits = limits_of(convert({"name": "c", "resources": resources}, Container))
    written = {
        key: value
        for controller in ("cpu", "memory")
        for key, value in settings(version, controller, found).items()
    }
    assert written == wanted
